// `operator verify` in a folder of the test: the real program, which trusts AWS alone, and the same under the authority
// of the emulator with enclaves that end with the test.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { cannedSigner } from './canned-signer.ts';
import { type Enclave, type RatlsServer, startRatlsServer } from './ratls-server.ts';
import { runWithRoot } from './run-operator.ts';
import { runShell } from './transcript.ts';

export const PCR0 = `0=${testPcr(0).toString('hex')}`;
export const OTHER = 'ab'.repeat(48);
export const KNOWN = ['--pcr', PCR0, '--any-configuration'];

export const pki = await createNsmPki();
export let folder: string;
export const servers: RatlsServer[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-verify-'));
});
afterEach(closeServers);
afterAll(() => rmSync(folder, { recursive: true }));

export function verify(args: string) {
  return runShell(`strongroom operator verify ${args}`, { folder, env: {} });
}

export function verifyUnderRoot(...args: string[]) {
  return runWithRoot(['verify', ...args], { rootFingerprint: pki.rootFingerprint });
}

export async function closeServers(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()));
}

export async function start(enclave: Enclave): Promise<RatlsServer> {
  const server = await startRatlsServer(enclave.identity, cannedSigner, enclave.nonceRoute);
  servers.push(server);
  return server;
}
