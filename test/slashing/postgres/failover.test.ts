// Failovers that lose commits which signers were promised: a promoted standby, an old primary that comes back. Two
// signers share a real server behind a proxy that leads elsewhere afterwards. Nothing slashable may be signed, and
// signing goes on by itself.

import { describe, expect, it } from 'vitest';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import type { ValidatorHistory } from '../../../signer/slashing/types.ts';
import { unrestrained } from '../../support/restrained.ts';
import { block, collect, publicKeyOf, stream, vote } from '../../support/slashing.ts';
import { slashablePairs } from '../../support/slashing-checker.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';
import {
  askForRivals,
  clock,
  counted,
  expectGoingOn,
  failOver,
  jumps,
  log,
  misplaceClock,
  moveToSlot,
  opened,
  primary,
  proxy,
  reasons,
  released,
  signAndLose,
  signer,
  untilDecided,
} from './failover-set-up.ts';

describe('an asynchronous failover that loses commits', () => {
  it('nothing slashable is signed by another signer, one jump is made, and signing goes on', async () => {
    const [one, other] = [await signer(), await signer()];
    await failOver(one, other);
    await askForRivals(other);
    expect(slashablePairs(released)).toEqual([]);
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
    expect(counted).toEqual(['other_server']);
    expect((await one.backend.identity()).floor).toEqual({ slot: 1001, sourceEpoch: 30, targetEpoch: 31 });
  });

  it('signers that meet it at the same time raise the store to one floor', async () => {
    const signers = await Promise.all(Array.from({ length: 4 }, signer));
    const [one, other] = signers;
    if (one === undefined || other === undefined) throw new Error('four signers');
    await failOver(one, other);
    await Promise.all(signers.map((each, key) => untilDecided(each, block(1, 1000, `rival ${key}`))));
    await expectGoingOn(signers.slice(0, 2));
    // Each process has a doubt of its own. The same floor again costs nothing, and whoever is late finds it raised.
    expect(counted.length).toBeGreaterThanOrEqual(1);
    expect(counted.length).toBeLessThanOrEqual(signers.length);
    expect((await one.backend.identity()).floor).toEqual({ slot: 1001, sourceEpoch: 30, targetEpoch: 31 });
  });

  it('a connection that was made to the standby and lives through its promotion signs nothing by itself', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, async () => {
      await standby.catchUp();
      await standby.stopReceiving();
    });
    proxy.switchTo(standby.port, 'cut');
    await expect.poll(() => other.backend.status().catch(() => undefined)).toBeDefined();
    const sessions = async () => {
      const text = "SELECT pid FROM pg_stat_activity WHERE application_name = 'strongroom' ORDER BY pid";
      return (await standby.query('postgres', text)).map(({ pid }) => pid);
    };
    const before = await sessions();
    expect(before).not.toEqual([]);
    await standby.promote();
    await askForRivals(other);
    expect(await sessions()).toEqual(expect.arrayContaining(before));
    await expectGoingOn([other, one]);
    expect(jumps()).toHaveLength(1);
  });

  it.each(['a signer that lives through it', 'one that starts afterwards'])(
    'a file that is exported before anything was signed there refuses what was lost: by %s',
    async (who) => {
      const [one, other] = [await signer(), await signer()];
      const standby = await failOver(one, other);
      const { store } = who === 'one that starts afterwards' ? await signer() : other;
      let file: ValidatorHistory[] = [];
      const exported = async () => {
        file = await collect(store.exportHistories([publicKeyOf(1)]));
        return file.length;
      };
      await expect.poll(() => exported().catch(() => 0)).toBe(1);
      // The key goes on elsewhere, with what the file says.
      await standby.query('postgres', 'CREATE DATABASE elsewhere');
      const elsewhere = await openTestBackend(standby.url('elsewhere'), { log });
      const protection = new SlashingProtection(unrestrained(elsewhere), {}, { clock, log });
      opened.push(protection);
      await elsewhere.importHistories(stream(file));
      for (const rival of [block(1, 1000, 'rival'), vote(1, 30, 31, 'rival'), vote(1, 29, 32, 'rival')]) {
        const answer = await protection.check(rival);
        if (answer.kind === 'safe') released.push(rival);
      }
      expect(slashablePairs(released)).toEqual([]);
      expect(jumps()).toHaveLength(1);
    },
  );

  it('with a clock that a witness contradicts nothing is signed, and the log says what to do', async () => {
    const [one, other] = [await signer(), await signer()];
    await failOver(one, other);
    misplaceClock(900);
    await expect
      .poll(async () => {
        await other.sign(block(3, 1000, 'new'));
        return reasons();
      })
      .toContain('the clock of this signer is 1200 s behind the witness');
    expect(await other.sign(block(4, 1000, 'new'))).toBe('clock_unconfirmed');
    // By hand, as `strongroom slashing jump` does it.
    await other.backend.jump({ slot: 1010, sourceEpoch: 31, targetEpoch: 32 });
    moveToSlot(1010);
    await askForRivals(other);
    await expectGoingOn([other, one]);
    expect(jumps()).toEqual([]);
  });

  it('an old primary that comes back is noticed by a signer that has signed over the new one', async () => {
    const [one, other] = [await signer(), await signer()];
    const standby = await primary.startStandby();
    opened.push(standby);
    await signAndLose(one, other, () => standby.catchUp());
    await standby.catchUp();
    await standby.promote();
    proxy.switchTo(standby.port, 'cut');
    moveToSlot(1050);
    expect(await untilDecided(one, block(1, 1050, 'jumped over'))).toBe('block_below_low_water_mark');
    moveToSlot(1060);
    expect(await untilDecided(one, block(1, 1060, 'on the new primary'))).toBe('safe');
    proxy.switchTo(primary.port, 'cut');
    expect(await untilDecided(one, block(2, 1060, 'unknown here'))).not.toBe('safe');
    expect(await untilDecided(other, block(1, 1060, 'rival'))).not.toBe('safe');
    await expectGoingOn([other, one]);
  });
});
