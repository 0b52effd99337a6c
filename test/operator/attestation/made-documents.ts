// Documents of the emulator, made wrong in one way and signed all the same, and the verdict on them under the TEST
// authority that signed them.

import { keyBinding } from '../../../common/attestation/contract.ts';
import { parseRegisters } from '../../../common/attestation/reference-file.ts';
import { type EvidenceVerdict, type VerifyOptions, verifyDocument } from '../../../common/attestation/verify.ts';
import { type CborValue, decodeCbor, encodeCbor } from '../../../common/formats/cbor.ts';
import {
  createNsmEmulator,
  type DocumentPayload,
  type NsmEmulatorOptions,
  testPcr,
} from '../../../rehearsal/nsm/emulator.ts';
import { type Certified, type CredentialOptions, createCredential, createNsmPki } from '../../../rehearsal/nsm/pki.ts';

export const NOW = Date.parse('2026-11-21T12:00:00Z');
export const HOUR_MS = 3_600_000;
export const PCR0 = testPcr(0).toString('hex');
export const OTHER = 'ab'.repeat(48);
export const ZERO = Buffer.alloc(48);
export const NONCE = Buffer.from('a nonce of thirty-two bytes, yes');
export const SPKI = Buffer.from('the DER of a public key');

export const pki = await createNsmPki({ at: NOW });

async function emulate(options: NsmEmulatorOptions = {}) {
  return createNsmEmulator({ pki, clock: { now: () => NOW }, ...options });
}

/** A document with NONCE and the binding of SPKI. */
export async function documentOf(options: NsmEmulatorOptions = {}): Promise<Buffer> {
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

export function verify(bytes: Uint8Array, options: Partial<VerifyOptions> = {}): EvidenceVerdict {
  return verifyDocument(bytes, {
    provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
    at: NOW,
    maxAgeSeconds: 300,
    referenceValues: parseRegisters([`0=${PCR0}`]),
    ...options,
  });
}

/** The step that failed and why: `chain expired`. */
export function outcome({ expected, steps, failures }: EvidenceVerdict): string {
  const failed = steps.find(({ result }) => result === 'failed');
  return expected ? 'expected' : `${failed?.name} ${failures.map(({ code }) => code).join()}`;
}

export async function refusal(options: NsmEmulatorOptions, how: Partial<VerifyOptions> = {}): Promise<string> {
  return outcome(verify(await documentOf(options), how));
}

export function withField(name: string, value: CborValue | undefined): NsmEmulatorOptions {
  return {
    deviate: (payload) => {
      const changed: DocumentPayload = new Map(payload);
      if (value === undefined) changed.delete(name);
      else changed.set(name, value);
      return changed;
    },
  };
}

export async function withLeaf(options: Partial<CredentialOptions>): Promise<NsmEmulatorOptions> {
  const issuer = pki.chain.at(-1);
  const leaf = await createCredential({
    ...{ name: 'leaf', notBefore: NOW - 3000, notAfter: NOW + 3 * HOUR_MS },
    ...(issuer === undefined ? {} : { issuer }),
    ...options,
  });
  return { pki: { ...pki, issueLeaf: async () => leaf } };
}

export async function withInstance(options: Partial<CredentialOptions>): Promise<NsmEmulatorOptions> {
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

export function leafUnder(issuer: Certified, at: number): Promise<Certified> {
  return createCredential({ name: 'leaf', issuer, notBefore: at - 3000, notAfter: at + 3 * HOUR_MS });
}
