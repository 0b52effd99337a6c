// Evidence kept in a file, or from standard input: an attestation document as it came, in base64 or in hex, or a PEM
// certificate that carries one. What is none of these is taken for a document, whose verification then says what is
// wrong with it.

import { readFileSync, statSync } from 'node:fs';
import { bounded } from '../../command-line/text.ts';
import { errorCode } from '../../formats/error-code.ts';
import { type CommandFailure, localFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';

const MAX_FILE_BYTES = 64 * 1024;
const MAX_PATH_CHARACTERS = 200;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

export type EvidenceFile =
  | { readonly kind: 'document'; readonly bytes: Buffer }
  /** DER. */
  | { readonly kind: 'certificate'; readonly bytes: Buffer };

/** @param path `-` is standard input @throws CommandFailure when it cannot be read, or holds several certificates */
export async function readEvidence(path: string, stdin: AsyncIterable<Buffer | string>): Promise<EvidenceFile> {
  const place = path === '-' ? 'standard input' : bounded(path, MAX_PATH_CHARACTERS);
  const content = path === '-' ? await readStream(stdin, place) : readBounded(path, place);
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
  return { kind: 'document', bytes: decodeText(text) ?? content };
}

/** Hex first: every text in hex is one in base64 too. */
function decodeText(text: string): Buffer | undefined {
  const compact = text.replace(/\s+/g, '');
  if (/^([0-9a-f]{2})+$/i.test(compact)) return Buffer.from(compact, 'hex');
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(compact) ? Buffer.from(compact, 'base64') : undefined;
}

async function readStream(stdin: AsyncIterable<Buffer | string>, place: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > MAX_FILE_BYTES) throw tooLarge(place);
  }
  return Buffer.concat(chunks);
}

function readBounded(path: string, place: string): Buffer {
  try {
    if (statSync(path).size <= MAX_FILE_BYTES) return readFileSync(path);
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
    throw fileFailure(place, 'read', code);
  }
  throw tooLarge(place);
}

function tooLarge(place: string): CommandFailure {
  return localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes: it holds no attestation document`);
}
