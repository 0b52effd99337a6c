// TLS certificate and key from files, re-read while running: an operator renews the files and no connection is dropped.
// A pair that cannot be used is reported and the old one stays in force. The key's bytes are wiped after use.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type Server as TlsServer } from 'node:tls';
import type { Log } from '../observe/log.ts';

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
  return { cert, key, fingerprint: leaf.fingerprint256, notAfter: new Date(leaf.validTo).toISOString() };
}

/** Poll the files and put a changed pair in force. Returns a function that stops it. */
export function reloadCertificate(
  server: TlsServer,
  files: CertificateFiles,
  current: CertificatePair,
  { intervalSeconds, log, onReload }: { intervalSeconds: number; log: Log; onReload?: (pair: CertificatePair) => void },
): { stop(): void; poll(): Promise<void> } {
  let inForce = current.fingerprint;
  let reported = '';
  const poll = async (): Promise<void> => {
    try {
      const pair = await readCertificatePair(files);
      if (pair.fingerprint !== inForce) {
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
