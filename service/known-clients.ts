// The clients of `tls.known_clients`, among them those of a file of Web3Signer's: a line for each, COMMON-NAME
// FINGERPRINT, where the fingerprint is the SHA-256 of the client's certificate, with colons or without. It trusts the
// file to be the operator's, and refuses a line that it does not understand: skipping one would keep a client out, or
// in, without a word.

import { readFileSync } from 'node:fs';
import { errorCode } from '../common/formats/error-code.ts';
import { declareClients, type StaticClient } from '../signer/auth/known-clients.ts';
import type { ReadKnownClients } from '../signer/boot/authorization.ts';
import type { Config } from '../signer/config/options.ts';
import { fingerprintHex } from '../signer/config/values/known-clients.ts';
import { type CheckFinding, unusableOption } from './look.ts';

export const readKnownClients: ReadKnownClients = (clients) => declareClients(clients.flatMap(clientsOf));

export function lookAtKnownClients({ tls: { known_clients } }: Config, { violations }: CheckFinding): void {
  for (const { file } of known_clients) {
    try {
      if (file !== undefined) readKnownClientsFile(file);
    } catch (error) {
      violations.push(unusableOption(error));
    }
  }
}

/** @throws Error when a file of clients cannot be used */
function clientsOf(client: Config['tls']['known_clients'][number]): readonly StaticClient[] {
  const { name, policies, bound_cidrs: boundCidrs } = client;
  const may = { policies, boundCidrs };
  if (client.subject !== undefined) return [{ ...may, name, match: { kind: 'subject', subject: client.subject } }];
  if (client.spki_sha256 !== undefined) return [{ ...may, name, match: { kind: 'spki', sha256: client.spki_sha256 } }];
  if (client.certificate_sha256 !== undefined) {
    return [{ ...may, name, match: { kind: 'certificate', sha256: client.certificate_sha256 } }];
  }
  return readKnownClientsFile(client.file ?? '').map(({ commonName, fingerprint }) => ({
    ...may,
    name: `${name}/${commonName}`,
    match: { kind: 'certificate', sha256: fingerprint, commonName },
  }));
}

interface KnownClientLine {
  readonly commonName: string;
  readonly fingerprint: string;
}

export const MAX_KNOWN_CLIENT_LINES = 4096;
const MAX_FILE_BYTES = 1_048_576;
/** As it stands in a subject without escapes. */
const COMMON_NAME = /^[A-Za-z0-9][A-Za-z0-9._@:*-]{0,63}$/;

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
