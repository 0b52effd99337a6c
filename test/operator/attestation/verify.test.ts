// The steps of specification/evidence.md#checks, each with what makes it fail: documents of the emulator, made wrong in
// one way and signed all the same.

import 'reflect-metadata';
import { Extension, KeyUsageFlags } from '@peculiar/x509';
import { describe, expect, it } from 'vitest';
import { keyBinding } from '../../../enclave/api/attestation.ts';
import { type CborValue, decodeCbor, encodeCbor } from '../../../formats/cbor.ts';
import { parseRegisters } from '../../../operator/attestation/policy.ts';
import { AWS_NITRO } from '../../../operator/attestation/provider.ts';
import { STEP_NAMES, type Verdict, type VerifyOptions, verifyDocument } from '../../../operator/attestation/verify.ts';
import type { DocumentPayload } from '../../../rehearsal/nsm/document.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { type Credential, type CredentialOptions, createCredential, createNsmPki } from '../../../rehearsal/nsm/pki.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const HOUR_MS = 3_600_000;
const PCR0 = testPcr(0).toString('hex');
const OTHER = 'ab'.repeat(48);
const ZERO = Buffer.alloc(48);
const NONCE = Buffer.from('a nonce of thirty-two bytes, yes');
const SPKI = Buffer.from('the DER of a public key');

const pki = await createNsmPki({ at: NOW });

async function emulate(options: NsmEmulatorOptions = {}) {
  return createNsmEmulator({ pki, clock: { now: () => NOW }, ...options });
}

/** A document with NONCE and the binding of SPKI. */
async function documentOf(options: NsmEmulatorOptions = {}): Promise<Buffer> {
  const { exchange } = await emulate(options);
  const asked = new Map<string, CborValue>([
    ['user_data', keyBinding(SPKI)],
    ['nonce', NONCE],
    ['public_key', null],
  ]);
  const answer = decodeCbor(await exchange(encodeCbor(new Map([['Attestation', asked]]))));
  return ((answer as Map<string, Map<string, Buffer>>).get('Attestation')?.get('document') ??
    Buffer.alloc(0)) as Buffer;
}

function verify(bytes: Uint8Array, options: Partial<VerifyOptions> = {}): Verdict {
  return verifyDocument(bytes, {
    provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
    at: NOW,
    maxAgeSeconds: 300,
    referenceValues: parseRegisters([`0=${PCR0}`]),
    ...options,
  });
}

/** The step that failed and why: `chain expired`. */
function outcome({ expected, steps, failures }: Verdict): string {
  const failed = steps.find(({ result }) => result === 'failed');
  return expected ? 'expected' : `${failed?.name} ${failures.map(({ code }) => code).join()}`;
}

async function refusal(options: NsmEmulatorOptions, how: Partial<VerifyOptions> = {}): Promise<string> {
  return outcome(verify(await documentOf(options), how));
}

function withField(name: string, value: CborValue | undefined): NsmEmulatorOptions {
  return {
    deviate: (payload) => {
      const changed: DocumentPayload = new Map(payload);
      if (value === undefined) changed.delete(name);
      else changed.set(name, value);
      return changed;
    },
  };
}

/** A document whose chain has this leaf, or this authority in place of the instance's. */
async function withLeaf(options: Partial<CredentialOptions>): Promise<NsmEmulatorOptions> {
  const issuer = pki.chain.at(-1);
  const leaf = await createCredential({
    ...{ name: 'leaf', notBefore: NOW - 3000, notAfter: NOW + 3 * HOUR_MS },
    ...(issuer === undefined ? {} : { issuer }),
    ...options,
  });
  return { pki: { ...pki, issueLeaf: async () => leaf } };
}

async function withInstance(options: Partial<CredentialOptions>): Promise<NsmEmulatorOptions> {
  const above = pki.chain.slice(0, 3);
  const zone = above.at(-1);
  const validity = { notBefore: NOW - HOUR_MS, notAfter: NOW + 24 * HOUR_MS };
  const instance = await createCredential({
    ...{ name: 'instance', pathLength: 0, ...validity },
    ...(zone === undefined ? {} : { issuer: zone }),
    ...options,
  });
  return { pki: { ...pki, chain: [...above, instance], issueLeaf: (_, at) => leafUnder(instance, at) } };
}

function leafUnder(issuer: Credential, at: number): Promise<Credential> {
  return createCredential({ name: 'leaf', issuer, notBefore: at - 3000, notAfter: at + 3 * HOUR_MS });
}

describe('a good document', () => {
  it.each<[string, NsmEmulatorOptions]>([
    ['untagged', {}],
    ['tagged 18', { tagged: true }],
    ['with a payload of indefinite length', { indefinite: true }],
    ['with optional fields absent', { optionalFields: 'absent' }],
  ])('is authentic and expected: %s', async (_, options) => {
    const how = { nonce: NONCE, expectedUserData: keyBinding(SPKI) };
    const verdict = verify(await documentOf(options), how);
    expect(outcome(verdict)).toBe('expected');
    expect(verdict.steps.map(({ name, result }) => `${name} ${result}`)).toEqual(
      STEP_NAMES.map((name) => `${name} passed`),
    );
    expect(verdict.failures).toEqual([]);
  });

  it('is expected when a register has one of several values', async () => {
    const referenceValues = parseRegisters([`0=${OTHER}`, `0=${PCR0}`, `8=${testPcr(8).toString('hex')}`]);
    expect(outcome(verify(await documentOf(), { referenceValues }))).toBe('expected');
  });

  it('without reference values is authentic, and no success', async () => {
    for (const referenceValues of [undefined, new Map()]) {
      const verdict = verify(await documentOf(), { referenceValues });
      expect(verdict).toMatchObject({ authentic: true, expected: false });
      expect(outcome(verdict)).toBe('policy no_reference_values');
    }
    const without0 = new Map([[1, [testPcr(1).toString('hex')]]]);
    expect(outcome(verify(await documentOf(), { referenceValues: without0 }))).toBe('policy no_reference_values');
  });
});

describe('1 and 2: the bytes', () => {
  it.each<[string, (document: Buffer) => Buffer, string]>([
    ['nothing', () => Buffer.alloc(0), 'cose malformed_document'],
    ['one byte more', (document) => Buffer.concat([document, Buffer.of(0)]), 'cose malformed_document'],
    ['one byte less', (document) => document.subarray(0, -1), 'cose malformed_document'],
    ['the tag twice', (document) => Buffer.concat([Buffer.of(0xd2, 0xd2), document]), 'cose malformed_document'],
    ['another tag', (document) => Buffer.concat([Buffer.of(0xd1), document]), 'cose malformed_document'],
    ['the tag in two bytes', (document) => Buffer.concat([Buffer.of(0xd8, 18), document]), 'cose malformed_document'],
    [
      'a longer head',
      (document) => Buffer.concat([Buffer.of(0x98, 4), document.subarray(1)]),
      'cose malformed_document',
    ],
    ['an array of indefinite length', indefiniteArray, 'cose malformed_document'],
    ['an unprotected header', unprotectedHeader, 'cose malformed_document'],
    ['more than the NSM answers', () => Buffer.alloc(0x3001), 'cose malformed_document'],
  ])('refused: %s', async (_, change, expected) => {
    expect(outcome(verify(change(await documentOf())))).toBe(expected);
  });

  it('refused: a protected header that is not exactly ES384, though its signature would verify', async () => {
    const headers = [
      new Map([[1, -7]]),
      new Map<number, CborValue>([
        [1, -35],
        [4, Buffer.from('key')],
      ]),
      new Map(),
    ];
    for (const header of headers)
      expect(await refusal({ protectedHeader: encodeCbor(header) })).toBe('cose wrong_algorithm');
  });

  it.each<[string, CborValue | undefined]>([
    ['module_id', ''],
    ['module_id', undefined],
    ['digest', 'SHA256'],
    ['timestamp', 0],
    ['timestamp', -1],
    ['timestamp', 253_402_300_800_000],
    ['timestamp', '1'],
    ['pcrs', new Map()],
    ['pcrs', new Map([[32, Buffer.alloc(48)]])],
    ['pcrs', new Map([['0', Buffer.alloc(48)]])],
    ['pcrs', new Map([[0, Buffer.alloc(32)]])],
    ['certificate', Buffer.alloc(0)],
    ['certificate', Buffer.alloc(1025)],
    ['cabundle', []],
    ['cabundle', Array.from({ length: 9 }, () => Buffer.alloc(1))],
    ['cabundle', ['text']],
    ['public_key', Buffer.alloc(0)],
    ['public_key', Buffer.alloc(1025)],
    ['user_data', Buffer.alloc(1025)],
    ['nonce', 'text'],
    ['another_field', 1],
  ])('refused: a payload whose %s is wrong (%#)', async (name, value) => {
    expect(await refusal(withField(name, value))).toBe('payload malformed_payload');
  });
});

describe('3: the chain', () => {
  it('ends in the root of the provider, whatever the bundle begins with', async () => {
    const foreign = await createNsmPki({ at: NOW });
    expect(await refusal({ pki: foreign })).toBe('chain untrusted_root');
    expect(await refusal({}, { provider: AWS_NITRO })).toBe('chain untrusted_root');
    // The true root put first over a chain that does not lead to it.
    const grafted = { ...foreign, chain: [pki.root, ...foreign.chain.slice(1)] };
    expect(await refusal({ pki: grafted })).toBe('chain broken_chain');
    const prefixed = { ...foreign, chain: [pki.root, ...foreign.chain] };
    expect(await refusal({ pki: prefixed })).toBe('chain broken_chain');
  });

  it('is valid at the chosen time, every certificate of it', async () => {
    const document = await documentOf();
    const at = (time: number) => outcome(verify(document, { at: time, maxAgeSeconds: 1e9 }));
    expect(at(NOW + 3 * HOUR_MS)).toBe('expected');
    expect(at(NOW + 3 * HOUR_MS + 1)).toBe('chain expired');
    expect(at(NOW - 3000)).toBe('expected');
    expect(at(NOW - 3001)).toBe('chain not_yet_valid');
    expect(await refusal(await withInstance({ notAfter: NOW - 1000 }))).toBe('chain expired');
  });

  it('judged now may begin as much later as clocks may be apart, and ends no later than it says', async () => {
    const leaf = async (options: Partial<CredentialOptions>) => documentOf(await withLeaf(options));
    const live = (document: Buffer, at = NOW) => outcome(verify(document, { at, live: true, maxAgeSeconds: 1e9 }));
    expect(live(await leaf({ notBefore: NOW + 300_000 }))).toBe('expected');
    expect(live(await leaf({ notBefore: NOW + 301_000 }))).toBe('chain not_yet_valid');
    expect(await refusal(await withLeaf({ notBefore: NOW + 1000 }))).toBe('chain not_yet_valid');
    const document = await documentOf();
    expect(live(document, NOW - 300_000)).toBe('expected');
    expect(live(document, NOW - 300_001)).toBe('freshness from_the_future');
    expect(live(document, NOW + 3 * HOUR_MS + 1)).toBe('chain expired');
  });

  it('is made of authorities, and ends in a certificate for signatures', async () => {
    const noAuthority = await withInstance({});
    expect(await refusal(noAuthority)).toBe('expected');
    const wrong = [
      await withInstance({ keyUsages: KeyUsageFlags.digitalSignature }),
      await withLeaf({ pathLength: 0 }),
      await withLeaf({ keyUsages: KeyUsageFlags.keyAgreement }),
      // One more authority than the instance's path length allows.
      { pki: { ...pki, ...(await belowInstance()) } },
    ];
    for (const options of wrong) expect(await refusal(options)).toBe('chain certificate_misuse');
  });

  it('has no authority that is none', async () => {
    const zone = pki.chain[2];
    const validity = { notBefore: NOW - HOUR_MS, notAfter: NOW + 24 * HOUR_MS };
    const usages = KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign;
    const plain = await createCredential({
      ...{ name: 'no authority', keyUsages: usages, ...validity },
      ...(zone === undefined ? {} : { issuer: zone }),
    });
    const chain = [...pki.chain.slice(0, 3), plain];
    const options = { pki: { ...pki, chain, issueLeaf: (_: string, at: number) => leafUnder(plain, at) } };
    expect(await refusal(options)).toBe('chain certificate_misuse');
  });

  it('has no critical extension that nobody handles', async () => {
    const unknown = (critical: boolean) => new Extension('1.3.6.1.4.1.99999.1', critical, Buffer.from('0500', 'hex'));
    expect(await refusal(await withLeaf({ extensions: [unknown(false)] }))).toBe('expected');
    const critical = await withInstance({ extensions: [unknown(true)] });
    expect(await refusal(critical)).toBe('chain unknown_critical_extension');
  });

  it('is of certificates in DER, nothing else and nothing more', async () => {
    const [root] = pki.chain;
    const der = root?.certificate ?? Buffer.alloc(0);
    const pem = Buffer.from(`-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`);
    for (const bytes of [pem, Buffer.concat([der, Buffer.of(0)]), Buffer.from('x')]) {
      const cabundle = [bytes, ...pki.chain.slice(1).map(({ certificate }) => certificate)];
      expect(await refusal(withField('cabundle', cabundle))).toBe('chain malformed_certificate');
    }
  });

  it('is whole, and in order', async () => {
    const bundle = (...order: number[]) =>
      withField(
        'cabundle',
        order.map((at) => pki.chain[at]?.certificate ?? null),
      );
    expect(await refusal(bundle(0, 1, 2, 3))).toBe('expected');
    expect(await refusal(bundle(0, 2, 3))).toBe('chain broken_chain');
    expect(await refusal(bundle(0, 1, 2))).toBe('chain broken_chain');
    expect(await refusal(bundle(0, 2, 1, 3))).toBe('chain certificate_misuse'); // the path lengths are out of order too
    expect(await refusal(bundle(3, 2, 1, 0))).toBe('chain untrusted_root');
  });
});

describe('4: the signature', () => {
  it('is of the leaf in the document', async () => {
    const certificate = (await leafUnder(pki.chain[3] as Credential, NOW)).certificate;
    expect(await refusal(withField('certificate', certificate))).toBe('signature bad_signature');
  });
});

describe('5: freshness', () => {
  it('an old document is stale, one of the future is too early', async () => {
    const made = (secondsAgo: number) => refusal({ timestamp: NOW - secondsAgo * 1000 });
    expect(await made(300)).toBe('expected');
    expect(await made(301)).toBe('freshness stale');
    expect(await made(-300)).toBe('expected');
    expect(await made(-301)).toBe('freshness from_the_future');
  });

  it('carries the nonce that was asked for', async () => {
    const nonce = Buffer.from(NONCE).fill(0);
    expect(await refusal({}, { nonce })).toBe('freshness nonce_mismatch');
    expect(await refusal({}, { nonce: NONCE.subarray(1) })).toBe('freshness nonce_mismatch');
    expect(await refusal(withField('nonce', null), { nonce })).toBe('freshness nonce_mismatch');
  });
});

describe('6: binding', () => {
  it('a document of another key is refused', async () => {
    const expectedUserData = keyBinding(Buffer.from('another key'));
    expect(await refusal({}, { expectedUserData })).toBe('binding wrong_key');
    expect(await refusal(withField('user_data', null), { expectedUserData })).toBe('binding wrong_key');
  });
});

describe('7 and 8: authentic, and not expected', () => {
  it('an enclave in debug mode, also when only one register of the image is zero or missing', async () => {
    expect(await refusal({ debugMode: true })).toBe('debug debug');
    for (const index of [0, 1, 2]) expect(await refusal({ pcrs: { [index]: ZERO } })).toBe('debug debug');
    const partial = new Map([0, 1].map((index) => [index, testPcr(index)] as const));
    expect(await refusal(withField('pcrs', partial))).toBe('debug debug');
    const verdict = verify(await documentOf({ debugMode: true }));
    expect(verdict).toMatchObject({ authentic: true, expected: false, failures: [{ code: 'debug', pcr: 0 }] });
  });

  it('each register that is another one is named', async () => {
    const referenceValues = parseRegisters([
      `0=${OTHER}`,
      `1=${testPcr(1).toString('hex')}`,
      `8=${OTHER}`,
      `16=${OTHER}`,
    ]);
    const verdict = verify(await documentOf(), { referenceValues });
    expect(verdict).toMatchObject({ authentic: true, expected: false });
    expect(verdict.failures.map(({ code, pcr }) => `${code} ${pcr}`)).toEqual([
      'wrong_pcr 0',
      'wrong_pcr 8',
      'wrong_pcr 16',
    ]);
    expect(verdict.failures[2]?.detail).toContain('PCR16 is not in the document');
  });
});

/** A chain with an authority below the instance's, which has path length 0. */
async function belowInstance(): Promise<Pick<typeof pki, 'chain' | 'issueLeaf'>> {
  const instance = pki.chain.at(-1);
  const validity = { notBefore: NOW - HOUR_MS, notAfter: NOW + 24 * HOUR_MS };
  const below = await createCredential({
    ...{ name: 'below', pathLength: 0, ...validity },
    ...(instance === undefined ? {} : { issuer: instance }),
  });
  return { chain: [...pki.chain, below], issueLeaf: (_, at) => leafUnder(below, at) };
}

function indefiniteArray(document: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0x9f), document.subarray(1), Buffer.of(0xff)]);
}

/** {4: h'00'} in place of the empty map. */
function unprotectedHeader(document: Buffer): Buffer {
  const at = document.indexOf(0xa0);
  return Buffer.concat([document.subarray(0, at), Buffer.of(0xa1, 4, 0x41, 0), document.subarray(at + 1)]);
}
