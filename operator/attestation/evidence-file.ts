// Evidence kept in a file, or from standard input: an attestation document as it came, in base64 or in hex, a PEM
// certificate that carries one, or the status of a signer with the evidence of its master key. Text that is none of
// these is refused; other bytes are taken for a document, whose verification then says what is wrong with it.

import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { readShownEvidence, type ShownEvidence } from '../../common/attestation/shown-evidence.ts';
import { bounded } from '../../common/command-line/text.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { type CommandFailure, localFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';

const PAGE_BEGINS = '<!doctype html>';
const MAX_FILE_BYTES = 64 * 1024;
/** The evidence of a key with sixteen links, and the rest of a status; and the page that holds it. */
const MAX_STATUS_BYTES = 1024 * 1024;
const MAX_PAGE_BYTES = 4 * MAX_STATUS_BYTES;
/** `{`: no document in any form begins so. */
const OBJECT_BEGINS = 0x7b;
const MAX_PATH_CHARACTERS = 200;
const MAX_START_CHARACTERS = 12;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

type EvidenceFile =
  | { readonly kind: 'document'; readonly bytes: Buffer }
  /** DER. */
  | { readonly kind: 'certificate'; readonly bytes: Buffer }
  /** A report's page with evidence in it. */
  | { readonly kind: 'page'; readonly text: string }
  | StatusEvidence;

export interface StatusEvidence {
  readonly kind: 'status';
  readonly shown: ShownEvidence;
  readonly parentWritesTables: boolean;
  /** As it was printed. */
  readonly bytes: Buffer;
}

/** @param path `-` is standard input @throws CommandFailure when it cannot be read, or holds several certificates */
export async function readEvidence(path: string, stdin: AsyncIterable<Buffer | string>): Promise<EvidenceFile> {
  const place = path === '-' ? 'standard input' : bounded(path, MAX_PATH_CHARACTERS);
  const content = path === '-' ? await readStream(stdin, place) : readBounded(path, place);
  const status = statusIn(content, place);
  if (status !== undefined) return status;
  if (content.subarray(0, PAGE_BEGINS.length).toString('latin1') === PAGE_BEGINS)
    return { kind: 'page', text: content.toString('utf8') };
  if (content.length > MAX_FILE_BYTES) throw tooLarge(place);
  const text = content.toString('latin1');
  const certificates = [...text.matchAll(PEM_CERTIFICATE)].map(([, body = '']) => Buffer.from(body, 'base64'));
  const [certificate, ...others] = certificates;
  if (others.length > 0) {
    throw localFailure(
      `${place} holds ${certificates.length} certificates`,
      'keep the attested one, which is self-signed, in a file of its own',
    );
  }
  if (certificate !== undefined) return { kind: 'certificate', bytes: certificate };
  const decoded = decodeText(text);
  // A document is CBOR, and begins with a byte that begins no character.
  if (decoded === undefined && content.length > 0 && isUtf8(content) && !content.includes(0))
    throw plainText(place, content.toString('utf8'));
  return { kind: 'document', bytes: decoded ?? content };
}

function plainText(place: string, text: string): CommandFailure {
  const start = bounded(text.trim().split(/\s/, 1)[0] ?? '', MAX_START_CHARACTERS);
  return localFailure(
    `${place} is neither a document nor a PEM certificate: it is text that begins with "${start}"`,
    'give the document as it came, in base64 or in hex, or the certificate that carries it',
  );
}

/** @returns undefined for what is no JSON object @throws CommandFailure for one that is no status of such a signer */
export function statusIn(content: Buffer, place: string): StatusEvidence | undefined {
  if (content[0] !== OBJECT_BEGINS || content.length > MAX_STATUS_BYTES) return undefined;
  const parsed = parseStrictJson(content);
  if (parsed.kind === 'refused') return undefined;
  const shown = readShownEvidence(parsed.value);
  if (shown === undefined) {
    throw localFailure(
      `${place} is JSON, and no status of a signer that shows where its master key comes from`,
      'take what `strongroom operator status --json` prints while the signer is unsealed',
    );
  }
  const { tee } = parsed.value as { readonly tee?: { readonly parent_writes_tables?: unknown } | null };
  return { kind: 'status', shown, parentWritesTables: tee?.parent_writes_tables === true, bytes: content };
}

/** Hex first: every text in hex is one in base64 too. */
function decodeText(text: string): Buffer | undefined {
  const compact = text.replace(/\s+/g, '');
  if (/^([0-9a-f]{2})+$/i.test(compact)) return Buffer.from(compact, 'hex');
  return compact !== '' && BASE64.test(compact) ? Buffer.from(compact, 'base64') : undefined;
}

async function readStream(stdin: AsyncIterable<Buffer | string>, place: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > MAX_PAGE_BYTES) throw tooLarge(place);
  }
  return Buffer.concat(chunks);
}

function readBounded(path: string, place: string): Buffer {
  try {
    if (statSync(path).size <= MAX_PAGE_BYTES) return readFileSync(path);
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
    throw fileFailure(place, 'read', code);
  }
  throw tooLarge(place);
}

function tooLarge(place: string): CommandFailure {
  return localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes: it holds no attestation document`);
}
