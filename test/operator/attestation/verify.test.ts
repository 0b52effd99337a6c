// The steps of specification/evidence.md#checks but the chain's, each with what makes it fail.

import { describe, expect, it } from 'vitest';
import { keyBinding } from '../../../common/attestation/contract.ts';
import { parseRegisters } from '../../../common/attestation/reference-file.ts';
import { STEP_NAMES } from '../../../common/attestation/verify.ts';
import { type CborValue, encodeCbor } from '../../../common/formats/cbor.ts';
import { type NsmEmulatorOptions, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import type { Certified } from '../../../rehearsal/nsm/pki.ts';
import {
  documentOf,
  leafUnder,
  NONCE,
  NOW,
  OTHER,
  outcome,
  PCR0,
  pki,
  refusal,
  SPKI,
  verify,
  withField,
  ZERO,
} from './made-documents.ts';

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

describe('4: the signature', () => {
  it('is of the leaf in the document', async () => {
    const certificate = (await leafUnder(pki.chain[3] as Certified, NOW)).certificate;
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

function indefiniteArray(document: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0x9f), document.subarray(1), Buffer.of(0xff)]);
}

/** {4: h'00'} in place of the empty map. */
function unprotectedHeader(document: Buffer): Buffer {
  const at = document.indexOf(0xa0);
  return Buffer.concat([document.subarray(0, at), Buffer.of(0xa1, 4, 0x41, 0), document.subarray(at + 1)]);
}
