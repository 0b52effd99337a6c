import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { inFlightSigning } from '../signer/tenure.ts';

/** Whether the promise has settled after every turn that is already due. */
async function settled(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  await setImmediate();
  return done;
}

describe('waiting for the signatures of keys that are taken out', () => {
  it('ends at once when none of the keys is signing', async () => {
    const inFlight = inFlightSigning();
    inFlight.begin('a');
    expect(await settled(inFlight.drain(['b', 'c']))).toBe(true);
    expect(await settled(inFlight.drain([]))).toBe(true);
  });

  it('lasts until the last signature of the last key has ended', async () => {
    const inFlight = inFlightSigning();
    for (const key of ['a', 'a', 'b']) inFlight.begin(key);
    const drained = inFlight.drain(['a', 'b']);
    inFlight.end('b');
    expect(await settled(drained)).toBe(false);
    inFlight.end('a');
    expect(await settled(drained)).toBe(false);
    inFlight.end('a');
    expect(await settled(drained)).toBe(true);
  });

  it('ends for everybody who waits', async () => {
    const inFlight = inFlightSigning();
    inFlight.begin('a');
    const both = Promise.all([inFlight.drain(['a']), inFlight.drain(['b', 'a'])]).then(() => undefined);
    inFlight.end('a');
    expect(await settled(both)).toBe(true);
  });

  it('can be repeated for a key that came back', async () => {
    const inFlight = inFlightSigning();
    inFlight.begin('a');
    inFlight.end('a');
    inFlight.begin('a');
    const drained = inFlight.drain(['a']);
    expect(await settled(drained)).toBe(false);
    inFlight.end('a');
    expect(await settled(drained)).toBe(true);
  });
});
