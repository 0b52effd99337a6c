// Evidence that is right or wrong in one way, for the test vectors of docs/specification/evidence.md: certificates and
// documents of a test authority that is made anew each time. Nothing of it proves anything about a real enclave.

import 'reflect-metadata';
import type { CborValue } from '../../../../common/formats/cbor.ts';
import { extendedOnce } from '../../../../common/formats/register.ts';
import {
  type DocumentPayload,
  type DocumentShape,
  signDocument,
  signPayload,
  testPcr,
} from '../../../../rehearsal/nsm/emulator.ts';
import { type Certified, type CredentialOptions, createCredential } from '../../../../rehearsal/nsm/pki.ts';

export const NOW = Date.parse('2026-11-22T12:00:00Z');
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const NONCE = Buffer.from('a nonce of thirty-two bytes, yes');
export const OTHER = 'ab'.repeat(48);
export const ZERO = Buffer.alloc(48);
export const CONFIGURATION = extendedOnce(testPcr(16));
export const CEREMONY = extendedOnce(testPcr(17));

export const validity = { notBefore: NOW - DAY_MS, notAfter: NOW + DAY_MS };
export const leafValidity = { notBefore: NOW - 3000, notAfter: NOW + 3 * HOUR_MS };
const MODULE_ID = 'i-0123456789abcdef0-enc0123456789abcdef';

export const root = await createCredential({ name: 'test.nitro-enclaves', pathLength: 'unbounded', ...validity });
export const instance = await authorityUnder(root, { pathLength: 0 });
export const leaf = await leafUnder(instance, {});

export function authorityUnder(issuer: Certified, options: Partial<CredentialOptions>): Promise<Certified> {
  return createCredential({ name: 'instance.test.nitro-enclaves', ...validity, issuer, ...options });
}

export function leafUnder(issuer: Certified, options: Partial<CredentialOptions>): Promise<Certified> {
  return createCredential({ name: `${MODULE_ID}.us-test-1.aws`, ...leafValidity, issuer, ...options });
}

export interface Made extends DocumentShape {
  readonly fields?: Readonly<Record<string, CborValue | undefined>>;
  readonly chain?: readonly Certified[];
  readonly leaf?: Certified;
  /** Whose key signs it; default: the leaf's. */
  readonly signer?: Certified;
}

export function registers(changed: Readonly<Record<number, Buffer | undefined>> = {}): CborValue {
  const values: Readonly<Record<number, Buffer | undefined>> = {
    ...{ 0: testPcr(0), 1: testPcr(1), 2: testPcr(2), 3: testPcr(3), 4: testPcr(4), 5: ZERO, 8: testPcr(8) },
    ...{ 16: CONFIGURATION, 17: CEREMONY },
    ...changed,
  };
  return new Map(
    Object.entries(values).flatMap(([index, value]) => (value === undefined ? [] : [[Number(index), value]])),
  );
}

export function document({
  fields = {},
  chain = [root, instance],
  leaf: of = leaf,
  signer,
  ...shape
}: Made = {}): Promise<Buffer> {
  return signDocument(payloadOf({ fields, chain, leaf: of }), signer ?? of, shape);
}

export function rawDocument(payload: Buffer): Promise<Buffer> {
  return signPayload(payload, leaf);
}

export function payloadOf({
  fields = {},
  chain = [root, instance],
  leaf: of = leaf,
}: Omit<Made, 'signer'>): DocumentPayload {
  const all: Readonly<Record<string, CborValue | undefined>> = {
    module_id: MODULE_ID,
    digest: 'SHA384',
    timestamp: NOW - 60_000,
    pcrs: registers(),
    certificate: of.certificate,
    cabundle: chain.map(({ certificate }) => certificate),
    public_key: null,
    user_data: null,
    nonce: NONCE,
    ...fields,
  };
  return new Map(Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
}

export function field(name: string, value: CborValue | undefined): Made {
  return { fields: { [name]: value } };
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
