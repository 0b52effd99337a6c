// A step of the boot that waits for something that never comes: the log says so, and then the start ends.

import { expect, it } from 'vitest';
import { StartupError, stepsInTime } from '../../signer/boot/step.ts';
import { recordingLog } from '../support/recording-log.ts';

const never = () => new Promise<never>(() => undefined);

it('a step that never ends is named, first in the log, then as the reason of the end', async () => {
  const log = recordingLog();
  const step = stepsInTime(log, { slowMs: 1, limitMs: 50 });
  const started = step('custody', never);
  await expect(started).rejects.toThrow(/^custody: it did not end within 0\.05 s: what it waits for does not answer$/);
  await expect(started).rejects.toBeInstanceOf(StartupError);
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { step: 'custody' } }]);
});

it('a step that ends is as if there were no limit', async () => {
  const log = recordingLog();
  const step = stepsInTime(log);
  await expect(step('permits', () => 7)).resolves.toBe(7);
  await expect(step('keys', async () => 'all')).resolves.toBe('all');
  const fails = (): never => {
    throw new Error('no');
  };
  await expect(step('keys', fails)).rejects.toThrow('keys: no');
  expect(log.lines).toEqual([]);
});
