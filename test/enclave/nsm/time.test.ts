// The time of the security module between two readings, and when a reading fails: it goes on, and is never taken back.

import { expect, it } from 'vitest';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { keepReading, openNsmClock } from '../../../enclave/nsm/time.ts';
import { createNsmEmulator } from '../../../rehearsal/nsm/emulator.ts';
import { recordingLog } from '../../support/recording-log.ts';

const START = Date.UTC(2026, 2, 1);

async function moduleAt(time: { now: number }) {
  const emulator = await createNsmEmulator({ clock: { now: () => time.now } });
  const device = { answers: true };
  const nsm = createNsm((request) => {
    if (!device.answers) throw new Error('the device is gone');
    return emulator.exchange(request);
  });
  const goAway = (): void => {
    device.answers = false;
  };
  return { nsm, goAway };
}

it('is carried on by the monotonic clock, and set anew by each reading', async () => {
  const time = { now: START };
  const monotonic = { now: 5_000 };
  const { nsm } = await moduleAt(time);
  const clock = await openNsmClock(nsm, { monotonic: () => monotonic.now });
  expect(clock.now()).toBe(START);
  monotonic.now += 1_500;
  expect(clock.now()).toBe(START + 1_500);
  time.now += 90_000; // a machine that was suspended: its own clock stood still
  await clock.read();
  expect(clock.now()).toBe(START + 90_000);
});

it('a module that does not answer stops nothing: the last reading goes on', async () => {
  const monotonic = { now: 0 };
  const { nsm, goAway } = await moduleAt({ now: START });
  const clock = await openNsmClock(nsm, { monotonic: () => monotonic.now });
  goAway();
  await expect(clock.read()).rejects.toThrow();
  monotonic.now += 61_000;
  expect(clock.now()).toBe(START + 61_000);

  const log = recordingLog();
  await using opened = new AsyncDisposableStack();
  const readings: number[] = [];
  keepReading({ read: async () => Promise.reject(new Error(`reading ${readings.push(1)}`)) }, log, opened, 1);
  await expect.poll(() => log.lines.length).toBeGreaterThan(1);
  expect(log.lines[0]).toMatchObject({ level: 'warn', message: 'the Nitro Secure Module did not say its time' });
});

it('a time that is behind the certificates of its own document is refused at the start', async () => {
  const emulator = await createNsmEmulator({ clock: { now: () => START }, timestamp: START - 10 * 86_400_000 });
  await expect(openNsmClock(createNsm(emulator.exchange), { monotonic: () => 0 })).rejects.toThrow(
    'behind its own certificates',
  );
});
