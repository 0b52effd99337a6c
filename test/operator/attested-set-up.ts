// Enclaves of a test, which end with it, under a TEST authority, and a command that is sent to one of them.
// A refusal counts only when neither the request nor the token has arrived.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { type NsmEmulatorOptions, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { cannedSigner } from './canned-signer.ts';
import {
  makeEnclave,
  type NonceRoute,
  type RatlsServer,
  type ServerIdentity,
  startRatlsServer,
} from './ratls-server.ts';
import { type Outcome, runWithRoot } from './run-operator.ts';

export const TOKEN = 'sr_mgmt_attested_test';
export const OTHER = 'ab'.repeat(48);
export const PCR0 = `0=${testPcr(0).toString('hex')}`;
/** An enclave of any configuration: PCR16 is not asked for. */
export const KNOWN = `--pcr ${PCR0} --any-configuration`;
export const CONFIGURATION = Buffer.alloc(48, 0x16);
export const CEREMONY = Buffer.alloc(48, 0x17);
export const HOUR_MS = 3_600_000;

export const pki = await createNsmPki();
export let folder: string;
let servers: RatlsServer[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-attested-'));
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
  servers = [];
});
afterAll(() => rmSync(folder, { recursive: true }));

export async function start(identity: ServerIdentity, route: NonceRoute): Promise<RatlsServer> {
  const server = await startRatlsServer(identity, cannedSigner, route);
  servers.push(server);
  return server;
}

/** An honest enclave, but for its NSM's options. */
export async function startEnclave(options: NsmEmulatorOptions = {}): Promise<RatlsServer> {
  const { identity, nonceRoute } = await makeEnclave({ pki, ...options });
  return start(identity, nonceRoute);
}

export function status(
  server: Pick<RatlsServer, 'url'>,
  flags = KNOWN,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const argv = `status --signer-url ${server.url} ${flags}`.trim().split(' ');
  return runWithRoot(argv, {
    rootFingerprint: pki.rootFingerprint,
    env: { SVC_OPERATOR_TOKEN: 'env:MINE', MINE: TOKEN, ...env },
  });
}

/** Refused with this code, before a request. */
export async function expectRefusal(
  server: RatlsServer,
  exitCode: 5 | 6,
  code: string,
  flags?: string,
): Promise<Outcome> {
  const outcome = await status(server, flags);
  expect(outcome.stderr).toContain(`${code}: `);
  expect(outcome).toMatchObject({ code: exitCode, stdout: '' });
  expectUntouched(server);
  return outcome;
}

/** Only the nonce route was asked, if anything. */
export function expectUntouched(server: RatlsServer): void {
  expect(server.received).toEqual([]);
  expect(server.bytes()).not.toMatch(/authorization|bearer|chamber|sr_mgmt/i);
  expect(server.bytes().replaceAll(/GET \/api\/v1\/attestation\?nonce=[0-9a-f]{64} HTTP\/1.1\r\n/g, '')).not.toMatch(
    /HTTP\/1/,
  );
}
