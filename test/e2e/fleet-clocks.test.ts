// Clocks of a fleet that are wrong: real processes on a chain of short epochs, whose clients ask for votes of the
// present all the time, each signer for another head. A machine that was paused answered after it woke, before its
// first heartbeat, and a signer whose clock was behind took over and signed again what another one had signed. Now
// nothing is signed ahead of the signer's own clock, and who is behind does not take over. TEST keys.
//
// TEST_SCALE=200 goes each way 200 times, a few rounds at once.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BEHIND } from '../../signer/chamber/startup-failures.ts';
import { type AskedFleet, AskedFleets, expectInRounds, goesOn, signs } from '../support/asked-fleet.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { sized } from '../support/scale.ts';

const ROUNDS = sized(1, 1);
const LIMIT_MS = LONGEST_WAIT_MS * ROUNDS;
const CLOCK = join(import.meta.dirname, '../support/faulty-clock.ts');
const BEHIND_MS = 60_000;
/** A paused machine reaches nothing for a while after it was resumed: its connections are gone. */
const CUT_OFF_MS = 2_000;

let fleets: AskedFleets;
beforeAll(async () => {
  fleets = await AskedFleets.start();
});
afterAll(() => fleets.close());

function clockOf(fleet: AskedFleet, name: string) {
  const file = fleet.path(name);
  const set = (wallMs: number, monotonicMs: number): void => writeFileSync(file, `${wallMs} ${monotonicMs}`);
  set(0, 0);
  return { set, env: { NODE_OPTIONS: `--import=${CLOCK}`, FAULTY_CLOCK_FILE: file } };
}

it.concurrent(
  `${ROUNDS} rounds: a machine that was paused, both clocks with it, signs nothing that another one signed meanwhile`,
  () =>
    expectInRounds(ROUNDS, () =>
      fleets.with(async (fleet) => {
        const clock = clockOf(fleet, 'clock');
        const proxy = await startFaultProxy(fleets.world.dynamodb.endpoint);
        try {
          const env = { ...clock.env, AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint };
          const paused = await fleet.start('first', fleet.sqlite('x'), env);
          const token = await fleet.token(paused);
          const votes = await fleet.asked(token, async (votes) => {
            await signs(votes.first);
            process.kill(paused.pid, 'SIGSTOP');
            const since = Date.now();
            await fleet.start('second', fleet.sqlite('y'));
            await signs(votes.second, 3);
            const stoodMs = Date.now() - since;
            clock.set(-stoodMs, -stoodMs);
            proxy.setRule(async () => {
              await pause(CUT_OFF_MS);
              return undefined;
            });
            process.kill(paused.pid, 'SIGCONT');
            await pause(CUT_OFF_MS);
            proxy.setRule(undefined);
            await signs(votes.second, 2);
          });
          expect(votes.pairs()).toEqual([]);
        } finally {
          await proxy.close();
        }
      }),
    ),
  LIMIT_MS,
);

it.concurrent(
  `${ROUNDS} rounds: a signer whose clock is a minute behind does not take over before it is set`,
  () =>
    expectInRounds(ROUNDS, () =>
      fleets.with(async (fleet) => {
        const clock = clockOf(fleet, 'clock');
        const killed = await fleet.start('first', fleet.sqlite('x'));
        const token = await fleet.token(killed);
        const votes = await fleet.asked(token, async (votes) => {
          await signs(votes.first, 2);
          await killed.kill();
          clock.set(-BEHIND_MS, 0);
          const behind = await fleet.start('second', fleet.sqlite('y'), clock.env);
          const line = await behind.logged(BEHIND);
          expect(line['behind_seconds']).toBeGreaterThan(BEHIND_MS / 1000 - 5);
          // Long enough for every other signer to take over.
          await pause(15_000);
          expect([...votes.second]).toEqual([]);
          clock.set(0, 0);
          await goesOn(votes);
        });
        expect(votes.second.size).toBeGreaterThan(0);
        expect(votes.pairs()).toEqual([]);
      }),
    ),
  LIMIT_MS,
);
