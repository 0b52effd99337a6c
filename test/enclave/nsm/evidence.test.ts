// Documents as their maker holds them: until when one is evidence, and which are given again.

import { beforeEach, describe, expect, it } from 'vitest';
import { encodeCbor } from '../../../common/formats/cbor.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { CACHED_DOCUMENT_SECONDS, cachedDocuments, evidenceOf } from '../../../enclave/nsm/evidence.ts';
import { createNsmEmulator, type NsmEmulator, type NsmEmulatorOptions } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import { type Nsm, NsmError } from '../../../signer/tee/nsm.ts';
import { START, type TestClock, testClock } from '../../support/stateful-auth.ts';

const HOUR_MS = 3_600_000;

let clock: TestClock;

beforeEach(() => {
  clock = testClock();
});

async function emulate(options: NsmEmulatorOptions = {}): Promise<{ emulator: NsmEmulator; nsm: Nsm }> {
  const emulator = await createNsmEmulator({ clock, ...options });
  return { emulator, nsm: createNsm(emulator.exchange) };
}

describe('a document is evidence', () => {
  it('until the leaf of the NSM ends, three hours after it was made', async () => {
    const { nsm } = await emulate();
    expect(evidenceOf(await nsm.attest({})).expiresAt).toBe(START + 3 * HOUR_MS);
    clock.advance(3600);
    expect(evidenceOf(await nsm.attest({})).expiresAt).toBe(START + 3 * HOUR_MS); // the same leaf again
  });

  it('until any certificate of its chain ends', async () => {
    const pki = await createNsmPki({ at: START - 23 * HOUR_MS }); // an instance certificate with one hour left
    const { nsm } = await emulate({ pki });
    expect(evidenceOf(await nsm.attest({})).expiresAt).toBe(START + HOUR_MS);
  });

  it('in the form of December 2025, and tagged', async () => {
    const { nsm } = await emulate({ indefinite: true, tagged: true, optionalFields: 'absent' });
    expect(evidenceOf(await nsm.attest({})).expiresAt).toBe(START + 3 * HOUR_MS);
  });

  it.each([
    ['no CBOR', Buffer.from('ff', 'hex')],
    ['no list', encodeCbor(7)],
    ['a payload that is no map', encodeCbor([Buffer.alloc(0), new Map(), encodeCbor(7), Buffer.alloc(0)])],
    ['no certificates', encodeCbor([Buffer.alloc(0), new Map(), encodeCbor(new Map()), Buffer.alloc(0)])],
    [
      'certificates that are none',
      encodeCbor([
        Buffer.alloc(0),
        new Map(),
        encodeCbor(
          new Map<string, Buffer | Buffer[]>([
            ['certificate', Buffer.from('x')],
            ['cabundle', []],
          ]),
        ),
        Buffer.alloc(0),
      ]),
    ],
  ])('not when it is %s', (_what, document) => {
    expect(() => evidenceOf(document)).toThrow(NsmError);
  });
});

describe('a document of an NSM that signs nothing', () => {
  /** As QEMU's nitro-enclave machine makes them (hw/virtio/virtio-nsm.c): zeros in place of certificates. */
  const document = (timestamp: unknown): Buffer => {
    const payload = new Map<string, unknown>([
      ['timestamp', timestamp],
      ['certificate', Buffer.alloc(64)],
      ['cabundle', [Buffer.alloc(64)]],
    ]);
    return encodeCbor([Buffer.alloc(0), new Map(), encodeCbor(payload as never), Buffer.alloc(64)]);
  };

  it('counts for three hours from its timestamp, where the image states such an NSM', () => {
    expect(evidenceOf(document(START), { signsNothing: true }).expiresAt).toBe(START + 3 * HOUR_MS);
    expect(() => evidenceOf(document('now'), { signsNothing: true })).toThrow(NsmError);
  });

  it('is none where the image does not', () => {
    expect(() => evidenceOf(document(START))).toThrow(NsmError);
  });
});

describe('documents are given again', () => {
  const asked = (emulator: NsmEmulator): number =>
    emulator.operations.filter((operation) => operation === 'Attestation').length;

  it('for the same key and user data, for a minute', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    const fields = { publicKey: Buffer.from('key'), userData: Buffer.from('data') };
    const first = await cached.attest(fields);
    clock.advance(CACHED_DOCUMENT_SECONDS - 1);
    expect(await cached.attest({ publicKey: Buffer.from('key'), userData: Buffer.from('data') })).toBe(first);
    expect(asked(emulator)).toBe(1);
    clock.advance(1);
    expect((await cached.attest(fields)).equals(first)).toBe(false);
    expect(asked(emulator)).toBe(2);
  });

  it('not when the clock was set back meanwhile', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    await cached.attest({});
    clock.advance(-1);
    await cached.attest({});
    expect(asked(emulator)).toBe(2);
  });

  it('not for another key, other user data, or the two exchanged', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    const [key, data] = [Buffer.from('a'), Buffer.from('b')];
    for (const fields of [{}, { publicKey: key }, { userData: key }, { publicKey: key, userData: data }])
      await cached.attest(fields);
    await cached.attest({ publicKey: data, userData: key });
    expect(asked(emulator)).toBe(5);
  });

  it('never when a nonce is asked for', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    await cached.attest({ nonce: Buffer.from('n') });
    await cached.attest({ nonce: Buffer.from('n') });
    expect(asked(emulator)).toBe(2);
  });

  it('to all who ask while it is made', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    const [first, second] = await Promise.all([cached.attest({}), cached.attest({})]);
    expect(first).toBe(second);
    expect(asked(emulator)).toBe(1);
  });

  it('never beyond their evidence', async () => {
    // half a minute of the instance certificate left
    const pki = await createNsmPki({ at: START - 24 * HOUR_MS + 30_000 });
    const { emulator, nsm } = await emulate({ pki });
    const cached = cachedDocuments(nsm, clock);
    await cached.attest({});
    clock.advance(30);
    await cached.attest({});
    expect(asked(emulator)).toBe(2);
  });

  it('not when the device failed: the next one asks again', async () => {
    const { emulator } = await emulate();
    let failing = true;
    const nsm = createNsm((request) => (failing ? Promise.reject(new Error('no')) : emulator.exchange(request)));
    const cached = cachedDocuments(nsm, clock);
    const both = await Promise.allSettled([cached.attest({}), cached.attest({})]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    failing = false;
    expect((await cached.attest({})).length).toBeGreaterThan(1000);
  });

  it('for a bounded number of keys', async () => {
    const { emulator, nsm } = await emulate();
    const cached = cachedDocuments(nsm, clock);
    for (let key = 0; key < 17; key++) await cached.attest({ publicKey: Buffer.from([key]) });
    await cached.attest({ publicKey: Buffer.from([16]) });
    expect(asked(emulator)).toBe(17);
    await cached.attest({ publicKey: Buffer.from([0]) });
    expect(asked(emulator)).toBe(18);
  });
});
