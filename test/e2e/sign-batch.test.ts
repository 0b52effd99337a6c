// POST /api/v1/eth2/sign on the real program: what it signs, what it refuses whole and by key, and what it leaves in
// the records.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deployKeyFiles } from '../support/deployment.ts';
import { PORTABLE_PROGRAM } from '../support/portable-program.ts';
import { attestation, batchCall, forkInfo, randaoReveal, rootOf, signCall } from '../support/requests.ts';
import { sized, someOf } from '../support/scale.ts';
import { JSON_ANSWER, keys, MANY, nameAt, names, outcomesOf, resultsOf } from './batch-requests.ts';

describe.each(['native', 'portable'] as const)('on the %s core', (blsCore) => {
  const deployment = deployKeyFiles(keys);
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployment.start(blsCore === 'portable' ? { program: PORTABLE_PROGRAM } : {});
  });
  afterAll(() => signer.stop());

  it(`${MANY} keys get the bytes of single requests, in their order`, async () => {
    const vote = attestation({ source: 100, target: 101 });
    const results = resultsOf(await batchCall(signer.url, names, vote));
    expect(results.map(({ identifier }) => identifier)).toEqual(names);
    expect(results.filter(({ signature }) => signature === undefined)).toEqual([]);
    const compared = someOf(results, sized(200, MANY));
    const singles = await Promise.all(
      compared.map(({ identifier }) => signCall(signer.url, identifier, vote, JSON_ANSWER)),
    );
    expect(singles.map(({ json }) => json['signature'])).toEqual(compared.map(({ signature }) => signature));
  });

  it('one slashable key gets 412, and the others sign', async () => {
    const vote = { source: 200, target: 201 };
    expect((await signCall(signer.url, nameAt(7), attestation({ ...vote, head: rootOf(9) }))).status).toBe(200);
    const answer = await batchCall(signer.url, names.slice(0, 20), attestation(vote));
    const expected = names.slice(0, 20).map((_, place) => (place === 7 ? '412 double_vote' : 'signed'));
    expect(outcomesOf(answer)).toEqual(expected);
    expect(resultsOf(answer)[7]?.error?.message).toBe('slashing protection refused the request');
  });

  it('two batches that contradict each other: each key signs one of them at most', async () => {
    for (let round = 0; round < sized(2, 5); round++) {
      const vote = { source: 300 + round, target: 301 + round };
      const answers = await Promise.all(
        [names.slice(0, 600), names.slice(0, 600).toReversed()].map((some, head) =>
          batchCall(signer.url, some, attestation({ ...vote, head: rootOf(20 + head) })),
        ),
      );
      const [one, other] = answers.map((answer) => {
        const signed = resultsOf(answer).filter(({ signature }) => signature !== undefined);
        return new Set(signed.map(({ identifier }) => identifier));
      });
      expect(one?.intersection(other ?? new Set()).size).toBe(0);
      expect((one?.size ?? 0) + (other?.size ?? 0)).toBe(600);
    }
  });

  it.each<[string, Record<string, unknown>]>([
    ['RANDAO_REVEAL', randaoReveal()],
    ['AGGREGATION_SLOT', { type: 'AGGREGATION_SLOT', fork_info: forkInfo(), aggregation_slot: { slot: '119' } }],
    [
      'SYNC_COMMITTEE_MESSAGE',
      {
        type: 'sync_committee_message',
        fork_info: forkInfo(),
        sync_committee_message: { beacon_block_root: rootOf(4), slot: '0' },
      },
    ],
    [
      'SYNC_COMMITTEE_SELECTION_PROOF',
      {
        type: 'SYNC_COMMITTEE_SELECTION_PROOF',
        fork_info: forkInfo(),
        sync_aggregator_selection_data: { slot: '5', subcommittee_index: '1' },
      },
    ],
  ])('%s is signed as by single requests', async (_type, body) => {
    const some = names.slice(0, 40);
    const results = resultsOf(await batchCall(signer.url, some, body));
    const singles = await Promise.all(some.map((name) => signCall(signer.url, name, body, JSON_ANSWER)));
    expect(singles.map(({ json }) => json['signature'])).toEqual(results.map(({ signature }) => signature));
    expect(results[0]?.signature).toMatch(/^0x[0-9a-f]{192}$/);
  });

  it('PAYLOAD_ATTESTATION_MESSAGE is signed, and each key signs one content a slot', async () => {
    const some = names.slice(0, 3);
    const payload = (present: boolean) => ({
      type: 'PAYLOAD_ATTESTATION_MESSAGE',
      fork_info: {
        ...forkInfo(),
        fork: { previous_version: '0x06000000', current_version: '0x07000000', epoch: '480000' },
      },
      payload_attestation_message: {
        version: 'GLOAS',
        data: { beacon_block_root: rootOf(4), slot: '15360001', payload_present: present, blob_data_available: true },
      },
    });
    expect((await signCall(signer.url, nameAt(1), payload(true))).status).toBe(200);
    expect(outcomesOf(await batchCall(signer.url, some, payload(false)))).toEqual([
      'signed',
      '412 equivocation',
      'signed',
    ]);
    expect(outcomesOf(await batchCall(signer.url, some, payload(true)))).toEqual([
      '412 equivocation',
      'signed',
      '412 equivocation',
    ]);
  });
});
