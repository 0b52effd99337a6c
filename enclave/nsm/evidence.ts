// Attestation documents as their maker holds them: how long one is good for, and the ones made lately.

import { X509Certificate } from 'node:crypto';
import { CborError, type CborValue, decodeCbor } from '../../common/formats/cbor.ts';
import type { Clock } from '../../common/observe/clock.ts';
import { type AttestationFields, type Nsm, NsmError } from '../../signer/tee/nsm.ts';

export interface Evidence {
  readonly document: Buffer;
  /** Milliseconds, as all three. */
  readonly validFrom: number;
  readonly expiresAt: number;
  readonly timestamp: number;
}

/** KMS takes five minutes. */
export const CACHED_DOCUMENT_SECONDS = 60;
const MAX_CACHED_DOCUMENTS = 16;

/** As long as the NSM's own certificate lives. */
const UNSIGNED_LIFETIME_MS = 3 * 3_600_000;

/** @throws NsmError `InvalidAnswer` when it is no attestation document */
export function evidenceOf(document: Buffer, { signsNothing }: Pick<Nsm, 'signsNothing'> = {}): Evidence {
  try {
    const payload = payloadOf(document);
    const timestamp = asTime(payload.get('timestamp'));
    if (signsNothing) return { document, validFrom: timestamp, expiresAt: timestamp + UNSIGNED_LIFETIME_MS, timestamp };
    const certificates = [payload.get('certificate'), ...asList(payload.get('cabundle'))];
    const chain = certificates.map((der) => new X509Certificate(asBytes(der)));
    const validFrom = Math.max(...chain.map(({ validFromDate }) => validFromDate.getTime()));
    const expiresAt = Math.min(...chain.map(({ validToDate }) => validToDate.getTime()));
    return { document, validFrom, expiresAt, timestamp };
  } catch (error) {
    if (error instanceof NsmError) throw error;
    throw notADocument(error instanceof CborError ? error.message : 'a certificate cannot be read');
  }
}

/** The NSM is one slow device. A document with a nonce is always new. */
export function cachedDocuments(
  nsm: Pick<Nsm, 'attest' | 'signsNothing'>,
  clock: Pick<Clock, 'now'>,
): Pick<Nsm, 'attest'> {
  const cache = new Map<string, { readonly madeAt: number; readonly evidence: Promise<Evidence> }>();
  const make = async (fields: AttestationFields): Promise<Evidence> => evidenceOf(await nsm.attest(fields), nsm);
  return {
    async attest(fields) {
      if (fields.nonce !== undefined) return nsm.attest(fields);
      const now = clock.now();
      const name = nameOf(fields);
      const cached = cache.get(name);
      if (cached !== undefined && isYoung(now - cached.madeAt)) {
        const { document, expiresAt } = await cached.evidence;
        if (now < expiresAt) return document;
      }
      const entry = { madeAt: now, evidence: make(fields) };
      cache.delete(name);
      cache.set(name, entry); // callers that ask in the meantime share it
      const [oldest] = cache.keys();
      if (cache.size > MAX_CACHED_DOCUMENTS && oldest !== undefined) cache.delete(oldest);
      try {
        return (await entry.evidence).document;
      } catch (error) {
        if (cache.get(name) === entry) cache.delete(name);
        throw error;
      }
    },
  };
}

/** A clock that was set back (it is the hypervisor's) makes no document younger. */
function isYoung(ageMs: number): boolean {
  return ageMs >= 0 && ageMs < CACHED_DOCUMENT_SECONDS * 1000;
}

function nameOf({ publicKey, userData }: AttestationFields): string {
  return [publicKey, userData].map((field) => (field === undefined ? '-' : Buffer.from(field).toString('hex'))).join();
}

/** COSE_Sign1 (RFC 9052 §4.2): the third of four. */
function payloadOf(document: Buffer): ReadonlyMap<string | number | bigint, CborValue> {
  const payload = decodeCbor(asBytes(asList(decodeCbor(document, { tag: 18 }))[2]));
  if (!(payload instanceof Map)) throw notADocument('its payload is not a map');
  return payload;
}

function asList(value: CborValue | undefined): readonly CborValue[] {
  if (!Array.isArray(value)) throw notADocument('a list is missing');
  return value as readonly CborValue[];
}

function asBytes(value: CborValue | undefined): Buffer {
  if (!Buffer.isBuffer(value)) throw notADocument('bytes are missing');
  return value;
}

function asTime(value: CborValue | undefined): number {
  const time = Number(value);
  if (!(Number.isSafeInteger(time) && time > 0)) throw notADocument('its timestamp is missing');
  return time;
}

function notADocument(problem: string): NsmError {
  return new NsmError('InvalidAnswer', `no attestation document: ${problem}`);
}
