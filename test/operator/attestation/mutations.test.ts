// Random changes to a valid document: none verifies, none is answered with anything but a verdict, none is more work.
// What is not covered by the signature has one encoding, so the only other bytes with the same meaning are those with
// tag 18 before them, or without it.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FAILURES } from '../../../common/attestation/failure.ts';
import { parseRegisters } from '../../../common/attestation/reference-file.ts';
import { verifyDocument } from '../../../common/attestation/verify.ts';
import { type CborValue, decodeCbor, encodeCbor } from '../../../common/formats/cbor.ts';
import { createNsmEmulator, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import { sized } from '../../support/scale.ts';

const MUTATIONS = sized(2_000, 10_000);
/** Of each failure that lies deep. */
const MIN_SEEN = sized(4, 20);
/** How much more work than the valid document, which goes through every step, a mutation may be. */
const MAX_RATIO = 5;
/**
 * The slowest mutations are measured again, so often: the least of it is the work, the rest is what else the machine
 * did.
 */
const REPETITIONS = 25;
const MEASURED_AGAIN = 10;
const NOW = Date.parse('2026-11-21T12:00:00Z');
const TAG = 0xd2;

const pki = await createNsmPki({ at: NOW });
const original = await makeDocument();
const options = {
  provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
  at: NOW,
  maxAgeSeconds: 300,
  referenceValues: parseRegisters([`0=${testPcr(0).toString('hex')}`]),
};

async function makeDocument(): Promise<Buffer> {
  const { exchange } = await createNsmEmulator({ pki, clock: { now: () => NOW } });
  const asked = new Map<string, CborValue>([['user_data', Buffer.from('some data')]]);
  const answer = decodeCbor(await exchange(encodeCbor(new Map([['Attestation', asked]])))) as Map<
    string,
    Map<string, Buffer>
  >;
  return answer.get('Attestation')?.get('document') ?? Buffer.alloc(0);
}

/** Everywhere alike: fast-check prefers small numbers, which are the first bytes. */
const place = fc.noBias(fc.nat({ max: original.length - 1 }));
const replacement = fc.oneof(
  fc.record({ kind: fc.constant('flip'), place, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant('set'), place, byte: fc.nat(255) }),
);
const resizing = fc.oneof(
  fc.record({ kind: fc.constant('insert'), place, bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }) }),
  fc.record({ kind: fc.constant('remove'), place, count: fc.integer({ min: 1, max: 64 }) }),
  fc.record({ kind: fc.constant('repeat'), place, count: fc.integer({ min: 1, max: 64 }) }),
  fc.record({ kind: fc.constant('cut'), place }),
);
const mutation = fc.oneof({ weight: 3, arbitrary: replacement }, { weight: 1, arbitrary: resizing });
/** Some at the outer structure, where a uniform place hardly ever falls. */
const mutations = fc
  .tuple(fc.array(mutation, { minLength: 1, maxLength: 3 }), fc.nat(9))
  .map(([changes, where]) =>
    where === 0 ? changes.map((change) => ({ ...change, place: change.place % 12 })) : changes,
  );

type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function apply(bytes: Buffer, change: Mutation): Buffer {
  const at = Math.min(change.place, bytes.length);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  if ('bit' in change)
    return Buffer.concat([before, Buffer.of((after[0] ?? 0) ^ (1 << change.bit)), after.subarray(1)]);
  if ('byte' in change) return Buffer.concat([before, Buffer.of(change.byte), after.subarray(1)]);
  if ('bytes' in change) return Buffer.concat([before, change.bytes, after]);
  if (!('count' in change)) return before;
  if (change.kind === 'remove') return Buffer.concat([before, after.subarray(change.count)]);
  return Buffer.concat([before, after.subarray(0, change.count), after]);
}

/** Equal but for tag 18. */
function sameDocument(bytes: Buffer): boolean {
  return (bytes[0] === TAG ? bytes.subarray(1) : bytes).equals(original);
}

it('the document they start from verifies, with and without its tag', () => {
  for (const bytes of [original, Buffer.concat([Buffer.of(TAG), original])])
    expect(verifyDocument(bytes, options).expected).toBe(true);
});

it(`none of ${MUTATIONS} mutations verifies, each ends in a known failure, with no more than ${MAX_RATIO} times the work`, () => {
  let judged = 0;
  const slowest: { readonly bytes: Buffer; readonly ms: number }[] = [];
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(mutations, (changes) => {
      const bytes = changes.reduce(apply, original);
      fc.pre(!sameDocument(bytes));
      const before = cpuMs();
      const { authentic, expected, failures } = verifyDocument(bytes, options);
      slowest.push({ bytes, ms: cpuMs() - before });
      if (slowest.length > MEASURED_AGAIN * 2) keepSlowest(slowest);
      judged += 1;
      expect({ authentic, expected }).toEqual({ authentic: false, expected: false });
      expect(failures).toHaveLength(1);
      for (const { code } of failures) {
        expect(Object.keys(FAILURES)).toContain(code);
        seen.set(code, (seen.get(code) ?? 0) + 1);
      }
    }),
    { numRuns: MUTATIONS, seed: 20_261_121 },
  );
  expect(judged).toBe(MUTATIONS);
  // They reach every depth, not only the parser.
  const codes = [
    'malformed_document',
    'wrong_algorithm',
    'malformed_payload',
    'malformed_certificate',
    'untrusted_root',
  ];
  const rare = [...codes, 'broken_chain', 'bad_signature'].filter((code) => (seen.get(code) ?? 0) < MIN_SEEN);
  expect(rare).toEqual([]);
  keepSlowest(slowest);
  const limit = MAX_RATIO * workOf(original);
  expect(slowest.filter(({ bytes }) => workOf(bytes) > limit)).toEqual([]);
});

/** This process's: what others do does not count. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function keepSlowest(measured: { readonly ms: number }[]): void {
  measured.sort((a, b) => b.ms - a.ms).splice(MEASURED_AGAIN);
}

/** Milliseconds of the shortest of several runs: a collection or a cold cache is in one of them, not in all. */
function workOf(bytes: Buffer): number {
  const runs = Array.from({ length: REPETITIONS }, () => {
    const before = cpuMs();
    verifyDocument(bytes, options);
    return cpuMs() - before;
  });
  return Math.min(...runs);
}
