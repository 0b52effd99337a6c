// A statement in its signed envelope (DSSE v1): Ed25519 over the pre-authentication encoding of the statement's bytes.
// What is not exactly one signature by the given key is refused; the statement is read after it was verified.

import { createHash, type KeyObject, sign, verify } from 'node:crypto';

/** in-toto's, https://github.com/in-toto/attestation/blob/main/spec/v1/envelope.md */
const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
/** An envelope that is longer is none of a release. */
export const MAX_ENVELOPE_BYTES = 1_048_576;

export type Opened = { readonly ok: true; readonly payload: Buffer } | { readonly ok: false; readonly problem: string };

export function seal(payload: Buffer, privateKey: KeyObject, publicKey: KeyObject): Buffer {
  const signature = { keyid: keyId(publicKey), sig: sign(null, encoded(payload), privateKey).toString('base64') };
  const envelope = { payload: payload.toString('base64'), payloadType: PAYLOAD_TYPE, signatures: [signature] };
  return Buffer.from(`${JSON.stringify(envelope)}\n`);
}

export function open(envelope: Buffer, publicKey: KeyObject): Opened {
  const parts = read(envelope);
  if (parts === undefined) return refused('it is no envelope (DSSE) of an in-toto statement with one signature');
  const { payload, keyid, signature } = parts;
  const wanted = keyId(publicKey);
  if (keyid !== wanted) return refused(`it is signed with another key: ${keyid}, not ${wanted}`);
  if (!verify(null, encoded(payload), publicKey, signature)) return refused('its signature is not valid');
  return { ok: true, payload };
}

/** SHA-256 of the public key (SPKI, DER), in hex. */
export function keyId(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

/** DSSE v1, PAE: lengths in front of both parts, so that none runs into the other. */
function encoded(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload]);
}

interface EnvelopeParts {
  readonly payload: Buffer;
  readonly keyid: string;
  readonly signature: Buffer;
}

function read(envelope: Buffer): EnvelopeParts | undefined {
  if (envelope.length > MAX_ENVELOPE_BYTES) return undefined;
  const value = parsed(envelope) as Readonly<Record<string, unknown>> | null | undefined;
  const signatures = value?.['signatures'];
  if (value?.['payloadType'] !== PAYLOAD_TYPE || !Array.isArray(signatures) || signatures.length !== 1)
    return undefined;
  const { keyid, sig } = (signatures[0] ?? {}) as Readonly<Record<string, unknown>>;
  const [payload, signature] = [base64(value['payload']), base64(sig)];
  if (payload === undefined || signature === undefined || typeof keyid !== 'string') return undefined;
  return { payload, keyid: /^[0-9a-f]{64}$/.test(keyid) ? keyid : 'one without an id', signature };
}

export function parsed(json: Buffer): unknown {
  try {
    return JSON.parse(json.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** In its one form: what decodes alike and is written otherwise is refused. */
function base64(text: unknown): Buffer | undefined {
  if (typeof text !== 'string') return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

function refused(problem: string): Opened {
  return { ok: false, problem };
}
