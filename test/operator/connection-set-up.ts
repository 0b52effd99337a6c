// Signers of a test, which end with it, a folder for its files, and the operator program run against them.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { makeCertificate } from '../support/certificates.ts';
import { cannedSigner } from './canned-signer.ts';
import { type Answerer, type FixtureSigner, startFixtureSigner } from './fixture-signer.ts';
import { runShell } from './transcript.ts';

export const TOKEN = 'sr_mgmt_connection_test';

export let folder: string;
let signers: FixtureSigner[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
});

afterEach(async () => {
  await Promise.all(signers.map((signer) => signer.close()));
  signers = [];
});

afterAll(() => rmSync(folder, { recursive: true }));

export async function start(answer: Answerer, certificate?: { readonly cert: string; readonly key: string }) {
  const signer = await startFixtureSigner(answer, certificate);
  signers.push(signer);
  return signer;
}

export function operator(args: string, env: Readonly<Record<string, string>> = {}) {
  return runShell(`strongroom operator ${args}`, { folder, env: { SVC_OPERATOR_TOKEN: TOKEN, ...env } });
}

export function plainly(signer: FixtureSigner, args: string) {
  return operator(`${args} --signer-url ${signer.url} --allow-plaintext-signer`);
}

export function startWithTls(name: string): Promise<FixtureSigner> {
  return start(cannedSigner, makeCertificate(folder, name));
}

export function openssl(args: string): void {
  execFileSync('openssl', args.split(' '), { cwd: folder, stdio: 'pipe' });
}
