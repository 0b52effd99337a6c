// TLS certificate and key from files, re-read while running: an operator renews the files and no connection is dropped.
// A pair that cannot be used is reported and the old one stays in force. The key's bytes are wiped after use.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type Server as TlsServer } from 'node:tls';
import type { Log } from '../../observe/log.ts';

const DAY_MS = 86_400_000;
/** Short enough for certificates that live a week or less, which are renewed by themselves. */
const WARN_DAYS = 1;

export interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** SHA-256 fingerprint of the leaf certificate, which names it in the log. */
  readonly fingerprint: string;
  /** RFC 3339. */
  readonly notAfter: string;
  readonly notBefore: string;
}

/**
 * Read and check one pair: PEM that parses, a key that belongs to the certificate.
 * @throws Error naming the option and the file, without the key's content
 */
export async function readCertificatePair({ certPath, keyPath }: CertificateFiles): Promise<CertificatePair> {
  const cert = await readNamed('tls.file.cert_path', certPath);
  const key = await readNamed('tls.file.key_path', keyPath);
  const leaf = parseNamed('tls.file.cert_path', certPath, 'a PEM certificate', () => new X509Certificate(cert));
  const privateKey = parseNamed('tls.file.key_path', keyPath, 'an unencrypted PEM private key', () =>
    createPrivateKey(key),
  );
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error(`tls.file.key_path: the key in ${keyPath} does not belong to the certificate in ${certPath}`);
  }
  createSecureContext({ cert, key }); // also checks the rest of the chain in the file
  const [notBefore, notAfter] = [leaf.validFrom, leaf.validTo].map((time) => new Date(time).toISOString());
  return { cert, key, fingerprint: leaf.fingerprint256, notBefore: notBefore ?? '', notAfter: notAfter ?? '' };
}

/**
 * Why clients will not take the certificate now, or soon; undefined when they will. Completes the option to a sentence.
 */
export function certificateWarning(
  { notBefore, notAfter }: Pick<CertificatePair, 'notBefore' | 'notAfter'>,
  nowMs: number,
): string | undefined {
  if (nowMs >= Date.parse(notAfter))
    return `holds a certificate that expired at ${notAfter}: clients refuse it. Renew it`;
  if (nowMs < Date.parse(notBefore)) {
    return `holds a certificate that is not valid before ${notBefore}: clients refuse it until then. Check the clock`;
  }
  const days = (Date.parse(notAfter) - nowMs) / DAY_MS;
  return days < WARN_DAYS ? `holds a certificate that expires at ${notAfter}. Renew it` : undefined;
}

export interface ReloadParts {
  readonly intervalSeconds: number;
  readonly log: Log;
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
  readonly onReload?: (pair: CertificatePair) => void;
}

/** Poll the files and put a changed pair in force. Returns a function that stops it. */
export function reloadCertificate(
  server: TlsServer,
  files: CertificateFiles,
  current: CertificatePair,
  { intervalSeconds, log, now = Date.now, onReload }: ReloadParts,
): { stop(): void; poll(): Promise<void> } {
  let inForce = current.fingerprint;
  let reported = '';
  const poll = async (): Promise<void> => {
    try {
      const pair = await readCertificatePair(files);
      if (pair.fingerprint !== inForce) {
        warnOfCertificate(pair, now(), log);
        server.setSecureContext({ cert: pair.cert, key: pair.key, minVersion: 'TLSv1.2' });
        inForce = pair.fingerprint;
        onReload?.(pair);
        log.info({ fingerprint: pair.fingerprint, not_after: pair.notAfter }, 'TLS certificate reloaded');
      }
      pair.key.fill(0);
      reported = '';
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== reported)
        log.error({ error: message }, 'TLS certificate not reloaded: the old one stays in force');
      reported = message;
    }
  };
  if (intervalSeconds === 0) return { stop: () => undefined, poll };
  const timer = setInterval(() => void poll(), intervalSeconds * 1000);
  timer.unref();
  return { stop: () => clearInterval(timer), poll };
}

export function warnOfCertificate(pair: CertificatePair, nowMs: number, log: Log): void {
  const says = certificateWarning(pair, nowMs);
  if (says !== undefined) log.warn({ not_after: pair.notAfter }, `tls.file.cert_path ${says}`);
}

async function readNamed(option: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new Error(`${option}: ${path} cannot be read (${code})`, { cause: error });
  }
}

function parseNamed<T>(option: string, path: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Error(`${option}: ${path} does not hold ${expected}`); // the cause may quote the file
  }
}
