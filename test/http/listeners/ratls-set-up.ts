// A signer with an RA-TLS listener, and raw connections to it. Whoever imports it has one of its own in every test.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect } from 'vitest';
import type { EvidenceVerdict } from '../../../common/attestation/verify.ts';
import type { RefusedConnection } from '../../../enclave/ratls/listen.ts';
import { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';
import { testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { RATLS_PORT } from '../../support/ratls-client.ts';
import { type RatlsSigner, type RatlsSignerOptions, startRatlsSigner } from '../../support/ratls-signer.ts';

export const HOUR = 3600;

export let signer: RatlsSigner;

beforeEach(async () => {
  signer = await startRatlsSigner();
});

afterEach(() => signer.close());

export async function restart(options: RatlsSignerOptions): Promise<void> {
  await signer.close();
  signer = await startRatlsSigner(options);
}

export function verdictOn(certificate: Buffer): EvidenceVerdict {
  return verifyCertificate(certificate, {
    provider: { name: 'test', rootSha256: signer.emulator.rootFingerprint },
    at: signer.clock.now(),
    maxAgeSeconds: 3 * HOUR,
    referenceValues: new Map([[0, [testPcr(0).toString('hex')]]]),
  }).verdict;
}

/** Whoever is cut off hangs up too. */
export async function connectRaw(): Promise<Socket> {
  const raw = await signer.parent.connect(RATLS_PORT);
  raw.on('error', () => undefined);
  raw.on('end', () => raw.end());
  return raw;
}

/** Sends these bytes and nothing else. Resolves when the signer has cut the connection without a word. */
export async function sendsAndIsCutOff(...chunks: Buffer[]): Promise<void> {
  const raw = await connectRaw();
  const received: Buffer[] = [];
  raw.on('data', (chunk: Buffer) => received.push(chunk));
  for (const chunk of chunks) raw.write(chunk);
  if (!raw.closed) await once(raw, 'close');
  expect(Buffer.concat(received)).toHaveLength(0);
}

export async function connectionsAre(count: number): Promise<void> {
  await expect.poll(() => signer.listener.connections()).toBe(count);
}

export function refusals(reason: RefusedConnection): number {
  return signer.refused.filter((counted) => counted === reason).length;
}

export function certificateOf(socket: TLSSocket): Buffer {
  const der = socket.getPeerX509Certificate()?.raw;
  if (der === undefined) throw new Error('no certificate');
  return der;
}
