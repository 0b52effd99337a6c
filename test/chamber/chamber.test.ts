// Sealed and Unsealed, and nothing else: what sealing does, in which order, and that nothing leads back.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import { Chamber } from '../../signer/chamber/chamber.ts';
import { MasterKey } from '../../signer/chamber/master-key.ts';
import type { Latch } from '../../signer/chamber/state-rows.ts';
import { recordingLog } from '../support/recording-log.ts';

const clock = { now: () => Date.parse('2026-01-02T03:04:05Z'), monotonic: () => 0 };

function open(options: { readonly writable?: () => boolean } = {}) {
  const events: string[] = [];
  const latches: Latch[] = [];
  const masterKey = new MasterKey(randomBytes(32), 'off');
  const table = {
    async writeLatch(latch: Latch) {
      if (options.writable?.() === false) throw new SignerError('state_stale');
      events.push('latch written');
      latches.push(latch);
      return latches[0] ?? latch;
    },
  };
  const chamber = new Chamber({ masterKey }, { table, clock, log: recordingLog() });
  chamber.onSealed(() => events.push('keys wiped'));
  chamber.onSealed(() => events.push('auth wiped'));
  return { chamber, events, masterKey };
}

describe('seal', () => {
  it('writes the latch first, then wipes everything once', async () => {
    const { chamber, events, masterKey } = open();
    const latch = await chamber.seal('drill', 'acc_1');
    expect(latch).toEqual({ reason: 'drill', accessor: 'acc_1', sealedAt: '2026-01-02T03:04:05.000Z' });
    expect(events).toEqual(['latch written', 'keys wiped', 'auth wiped']);
    expect(chamber.state).toBe('Sealed');
    expect(() => masterKey.subKey('tokenHmac')).toThrow('the master key is not available');
    expect(() => chamber.masterKey).toThrow('the master key is not available');
  });

  it('again, and at the same time, answers the first latch and wipes nothing twice', async () => {
    const { chamber, events } = open();
    const [a, b] = await Promise.all([chamber.seal('first', 'acc_1'), chamber.seal('second', 'acc_2')]);
    expect(b).toEqual(a);
    expect(await chamber.seal('third', 'acc_3')).toEqual(a);
    expect(events.filter((event) => event === 'keys wiped')).toHaveLength(1);
  });

  it('that cannot write the latch seals nothing, so that the call can be repeated', async () => {
    let writable = false;
    const { chamber } = open({ writable: () => writable });
    await expect(chamber.seal(null, 'acc_1')).rejects.toMatchObject({ reason: 'state_stale' });
    expect(chamber.state).toBe('Unsealed');
    writable = true;
    await chamber.seal(null, 'acc_1');
    expect(chamber.state).toBe('Sealed');
  });

  it('because another replica wrote the latch wipes the same, and writes nothing', () => {
    const { chamber, events } = open();
    const latch = { reason: null, accessor: 'acc_9', sealedAt: null };
    chamber.sealBecauseOf(latch);
    chamber.sealBecauseOf({ ...latch, accessor: 'acc_10' });
    expect(events).toEqual(['keys wiped', 'auth wiped']);
    expect(chamber.latch).toEqual(latch);
  });
});

it('a chamber that starts sealed has no master key, and wipes at once what is opened later', () => {
  const latch = { reason: null, accessor: null, sealedAt: null };
  const table = { writeLatch: async (latch: Latch) => latch };
  const chamber = new Chamber({ latch }, { table, clock, log: recordingLog() });
  let wiped = false;
  chamber.onSealed(() => (wiped = true));
  expect(chamber.state).toBe('Sealed');
  expect(wiped).toBe(true);
  expect(() => chamber.masterKey).toThrow('the master key is not available');
});
