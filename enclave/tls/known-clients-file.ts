// Web3Signer's file of known clients: a line for each, COMMON-NAME FINGERPRINT, where the fingerprint is the SHA-256 of
// the client's certificate, with colons or without. It trusts the file to be the operator's, and refuses a line that it
// does not understand: skipping one would keep a client out, or in, without a word.

import { readFileSync } from 'node:fs';
import { errorCode } from '../../formats/error-code.ts';

export interface KnownClientLine {
  readonly commonName: string;
  /** 64 hex digits. */
  readonly fingerprint: string;
}

export const MAX_KNOWN_CLIENT_LINES = 4096;
const MAX_FILE_BYTES = 1_048_576;
/** As it stands in a subject without escapes. */
const COMMON_NAME = /^[A-Za-z0-9][A-Za-z0-9._@:*-]{0,63}$/;

/** @throws Error naming the file and the line */
export function readKnownClientsFile(path: string): readonly KnownClientLine[] {
  let text: string;
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MAX_FILE_BYTES) throw new Error('it is larger than any list of clients');
    text = bytes.toString('utf8');
  } catch (error) {
    const code = errorCode(error) ?? 'too large';
    throw new Error(`tls.known_clients: ${path} cannot be read (${code})`, { cause: error });
  }
  return parseKnownClients(text, path);
}

/** @throws Error naming the line */
export function parseKnownClients(text: string, path: string): readonly KnownClientLine[] {
  const byFingerprint = new Map<string, KnownClientLine>();
  for (const [index, line] of text.split('\n').entries()) {
    const content = line.trim();
    if (content === '' || content.startsWith('#')) continue;
    const refuse = (problem: string): never => {
      throw new Error(`tls.known_clients: ${path} line ${index + 1} ${problem}`);
    };
    const [commonName = '', digits = '', ...more] = content.split(/\s+/);
    const fingerprint = fingerprintHex(digits);
    if (fingerprint === undefined || more.length > 0 || !COMMON_NAME.test(commonName)) {
      return refuse('is not a common name and the SHA-256 fingerprint of a certificate (COMMON-NAME AB:CD:…)');
    }
    const earlier = byFingerprint.get(fingerprint);
    if (earlier !== undefined && earlier.commonName !== commonName)
      return refuse('has the fingerprint of another name');
    byFingerprint.set(fingerprint, { commonName, fingerprint });
    if (byFingerprint.size > MAX_KNOWN_CLIENT_LINES) return refuse(`is one more than ${MAX_KNOWN_CLIENT_LINES}`);
  }
  return [...byFingerprint.values()];
}

/** 32 bytes of hex in any case, with colons between all of them or none, as 64 lower-case digits. */
export function fingerprintHex(text: string): string | undefined {
  const isHex = /^(?:[0-9a-f]{64}|[0-9a-f]{2}(?::[0-9a-f]{2}){31})$/i.test(text);
  return isHex ? text.replaceAll(':', '').toLowerCase() : undefined;
}
