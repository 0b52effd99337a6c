// A copy of the files that is restored in the place of the database: it is noticed by signers that have signed over
// what it lacks, and a crash that loses nothing costs nothing.

import { describe, expect, it } from 'vitest';
import { block } from '../../support/slashing.ts';
import {
  askForRivals,
  database,
  expectGoingOn,
  jumps,
  moveToSlot,
  primary,
  signAndLose,
  signer,
  slot,
  untilDecided,
} from './failover-set-up.ts';

describe('a copy of the files that is restored in the place of the database', () => {
  const restoreTheCopy = async () => {
    await primary.stop('fast');
    primary.restoreFiles();
    await primary.start();
  };
  const saveTheFiles = async () => {
    await primary.stop('fast');
    primary.saveFiles();
    await primary.start();
  };

  it('is noticed by a signer that lives through it, which raises it for all', async () => {
    const [one, other] = [await signer(), await signer()];
    await signAndLose(one, other, async () => {
      await saveTheFiles();
      expect(await untilDecided(one, block(7, 1, 'reconnect'))).toBe('safe');
    });
    await restoreTheCopy();
    // A message of another key: nothing that this signer knows of the key is missing.
    expect(await untilDecided(one, block(2, 1001, 'elsewhere'))).toBe('block_below_low_water_mark');
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  it('is noticed by a signer that only looked at the database since the copy was made', async () => {
    const [one, other] = [await signer(), await signer()];
    await signAndLose(one, other, async () => {
      await saveTheFiles();
      expect(await untilDecided(one, block(7, 1, 'reconnect'))).toBe('safe');
    });
    await primary.query(database, 'CREATE TABLE other_work AS SELECT generate_series(1, 20000)');
    const { signal } = new AbortController();
    await expect
      .poll(() =>
        other.backend.checkHealth(signal).then(
          () => 'up',
          () => 'down',
        ),
      )
      .toBe('up');
    await restoreTheCopy();
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  it('a crash of the server loses nothing and costs nothing: no jump', async () => {
    const [one, other] = [await signer(), await signer()];
    for (let round = 0; round < 5; round += 1) {
      moveToSlot(slot + 1);
      expect(await untilDecided(one, block(1, slot, round))).toBe('safe');
      expect(await untilDecided(other, block(2, slot, round))).toBe('safe');
      await primary.stop('immediate');
      await primary.start();
    }
    expect(await untilDecided(other, block(1, slot, 'rival'))).toBe('double_block');
    expect(jumps()).toEqual([]);
  });
});
