// What pruning costs the store: whoever votes waits for it, and a million keys make 2,604 votes old in a second.

import { expect, it, vi } from 'vitest';
import { GATHERED_EPOCHS, RETAINED_EPOCHS } from '../../../signer/slashing/history/prune.ts';
import { PRUNE_STEP_ENTRIES, PRUNED_AT_ONCE } from '../../../signer/slashing/operations/pruning.ts';
import { verdictName, vote } from '../../support/slashing.ts';
import { openHere } from './import-set-up.ts';

const KEYS = 3 * PRUNED_AT_ONCE;
const OLD_EPOCHS = GATHERED_EPOCHS + 1;

it('keys that vote in every epoch are pruned once in 64 epochs, eight in one commit', async () => {
  const { check, operations, connection, close } = openHere();
  const voteOfAll = (target: number) => {
    const votes = Array.from({ length: KEYS }, (_, key) => vote(key + 1, target - 1, target, 'a'));
    expect(new Set(check(votes).map(verdictName))).toEqual(new Set(['safe']));
  };
  for (let epoch = 1; epoch <= OLD_EPOCHS; epoch++) voteOfAll(epoch);
  voteOfAll(OLD_EPOCHS + RETAINED_EPOCHS);
  const run = vi.spyOn(connection, 'exec');
  const commits = () => run.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
  expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(0);
  expect(commits()).toBe(0);

  voteOfAll(OLD_EPOCHS + RETAINED_EPOCHS + 1);
  run.mockClear();
  for (const steps of [1, 2, 3]) {
    expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(PRUNED_AT_ONCE * OLD_EPOCHS);
    expect(commits()).toBe(steps);
  }
  expect(await operations.pruneStep(PRUNE_STEP_ENTRIES)).toBe(0);
  expect(connection.prepare('SELECT count(*) AS votes FROM attestations').get()).toEqual({ votes: 2 * KEYS });
  close();
});
