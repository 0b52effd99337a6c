// TLS certificate and key from files, and the CA of clients, read again while running. What cannot be used is reported,
// and the old stays in force.

import { constants, createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions, type Server as TlsServer } from 'node:tls';
import { errorCode } from '../../common/formats/error-code.ts';
import type { Log } from '../../common/observe/log.ts';
import { type ClientCa, parseClientCa } from './client-ca.ts';

const DAY_MS = 86_400_000;
/** Short enough for certificates that live a week or less, which are renewed by themselves. */
const WARN_DAYS = 1;

interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
  readonly clientCaPath?: string | undefined;
  /** Clients may show certificates: pinned ones without a CA. */
  readonly asksClients?: boolean;
}

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly fingerprint: string;
  readonly notAfter: string;
  readonly notBefore: string;
  readonly clientCa: ClientCa | undefined;
}

/**
 * TLS 1.2 and later. Where clients are asked, no session is ever resumed: a resumed one would show a certificate that
 * was judged before the last reload.
 */
export function secureContextOf({ cert, key, clientCa }: CertificatePair, asksClients = false): SecureContextOptions {
  const base = { cert, key, minVersion: 'TLSv1.2' } as const;
  // Without a list of our own the system's authorities would count.
  return asksClients ? { ...base, ca: clientCa?.pem ?? [], secureOptions: constants.SSL_OP_NO_TICKET } : base;
}

/** @throws Error naming the option and the file, without the key's content */
export async function readCertificatePair(files: CertificateFiles): Promise<CertificatePair> {
  const judged = await judgeCertificatePair(files);
  if ('pair' in judged) return judged.pair;
  throw judged.faults[0];
}

/** Reads the pair as readCertificatePair does, and judges each file, whatever the others are like. */
export async function judgeCertificatePair({
  certPath,
  keyPath,
  clientCaPath,
}: CertificateFiles): Promise<{ readonly pair: CertificatePair } | { readonly faults: readonly unknown[] }> {
  const faults: unknown[] = [];
  const tried = async <T>(work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      faults.push(error);
      return undefined;
    }
  };
  const cert = await tried(() => readNamed('tls.file.cert_path', certPath));
  const key = await tried(() => readNamed('tls.file.key_path', keyPath));
  const leaf = cert && (await tried(() => parseCertificate(certPath, cert)));
  const privateKey = key && (await tried(() => parsePrivateKey(keyPath, key)));
  if (leaf !== undefined && privateKey !== undefined) {
    await tried(() => {
      if (!leaf.checkPrivateKey(privateKey)) {
        throw new Error(`tls.file.key_path: the key in ${keyPath} does not belong to the certificate in ${certPath}`);
      }
      createSecureContext({ cert, key }); // also checks the rest of the chain in the file
    });
  }
  const clientCa = clientCaPath === undefined ? undefined : await tried(() => readClientCa(clientCaPath));
  if (faults.length > 0 || cert === undefined || key === undefined || leaf === undefined) {
    key?.fill(0);
    return { faults };
  }
  const [notBefore, notAfter] = [leaf.validFrom, leaf.validTo].map((time) => new Date(time).toISOString());
  const { fingerprint256: fingerprint } = leaf;
  return { pair: { cert, key, fingerprint, notBefore: notBefore ?? '', notAfter: notAfter ?? '', clientCa } };
}

function parseCertificate(path: string, pem: Buffer): X509Certificate {
  return parseNamed('tls.file.cert_path', path, 'a PEM certificate', () => new X509Certificate(pem));
}

function parsePrivateKey(path: string, pem: Buffer): KeyObject {
  return parseNamed('tls.file.key_path', path, 'an unencrypted PEM private key', () => createPrivateKey(pem));
}

async function readClientCa(path: string): Promise<ClientCa> {
  const pem = await readNamed('tls.client_ca', path);
  try {
    return parseClientCa(pem);
  } catch (error) {
    throw new Error(`tls.client_ca: ${path} ${error instanceof Error ? error.message : 'cannot be used'}`, {
      cause: error,
    });
  }
}

/** As certificateWarning, of `tls.client_ca`. */
export function clientCaWarning(clientCa: ClientCa | undefined, nowMs: number): string | undefined {
  if (clientCa === undefined || nowMs < Date.parse(clientCa.notAfter)) return undefined;
  return `holds a certificate that expired at ${clientCa.notAfter}: clients under it are refused. Renew it`;
}

/** Why clients will not take the certificate now, or soon. Completes the option to a sentence. */
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

interface CertificateReloadParts {
  readonly intervalSeconds: number;
  readonly log: Log;
  readonly now?: () => number;
  readonly onReload?: (pair: CertificatePair) => void;
}

/** Poll the files and put a changed pair in force. A poll answers whether the files could be used. */
export function reloadCertificate(
  server: TlsServer,
  files: CertificateFiles,
  current: CertificatePair,
  { intervalSeconds, log, now = Date.now, onReload }: CertificateReloadParts,
): { stop(): void; poll(): Promise<boolean> } {
  let inForce = identityOf(current);
  let reported = '';
  const poll = async (): Promise<boolean> => {
    try {
      const pair = await readCertificatePair(files);
      if (identityOf(pair) !== inForce) {
        warnOfCertificate(pair, now(), log);
        server.setSecureContext(secureContextOf(pair, files.asksClients));
        inForce = identityOf(pair);
        onReload?.(pair);
        log.info({ fingerprint: pair.fingerprint, not_after: pair.notAfter }, 'TLS certificate reloaded');
      }
      pair.key.fill(0);
      reported = '';
      return true;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== reported)
        log.error({ error: message }, 'TLS certificate not reloaded: the old one stays in force');
      reported = message;
      return false;
    }
  };
  if (intervalSeconds === 0) return { stop: () => undefined, poll };
  const timer = setInterval(() => void poll(), intervalSeconds * 1000);
  timer.unref();
  return { stop: () => clearInterval(timer), poll };
}

/** Another one has to be put in force: of the whole file, because clients need its intermediates, too. */
function identityOf({ cert, clientCa }: CertificatePair): string {
  return `${hash('sha256', cert)} ${clientCa?.digest}`;
}

export function warnOfCertificate(pair: CertificatePair, nowMs: number, log: Log): void {
  const says = certificateWarning(pair, nowMs);
  if (says !== undefined) log.warn({ not_after: pair.notAfter }, `tls.file.cert_path ${says}`);
  const saysOfCa = clientCaWarning(pair.clientCa, nowMs);
  if (saysOfCa !== undefined) log.warn({ not_after: pair.clientCa?.notAfter }, `tls.client_ca ${saysOfCa}`);
}

async function readNamed(option: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
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
