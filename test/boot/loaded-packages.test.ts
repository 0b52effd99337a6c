// Which packages a signer on SQLite and key files has loaded once it has signed: those that it uses. Each further one
// would cost every start time and memory, and an attacker could use its faults.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Deployment, deploy } from '../support/deployment.ts';
import { attestation, call, testKey } from '../support/requests.ts';

/** Writes, at the end of the process, the URL of every module that it has loaded. */
const LIST_MODULES = `
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
process.on('exit', () => appendFileSync(process.env.LOADED_MODULES, loaded.join('\\n')));
`;

async function packagesLoaded(deployment: Deployment): Promise<readonly string[]> {
  const list = join(deployment.folder, 'modules.txt');
  const hook = `data:text/javascript,${encodeURIComponent(LIST_MODULES)}`;
  const signer = await deployment.start({ env: { NODE_OPTIONS: `--import=${hook}`, LOADED_MODULES: list } });
  const path = `${signer.url}/api/v1/eth2/sign/${testKey(0).publicKey}`;
  expect(await call(path, { body: attestation({ source: 1, target: 2 }) })).toMatchObject({ status: 200 });
  expect(await signer.stop()).toBe(0);
  const urls = readFileSync(list, 'utf8').matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//g);
  return [...new Set([...urls].map(([, name = '']) => name))];
}

const UNUSED = [
  /^@(?:aws-sdk|smithy)\//,
  /^pg(?:-|$)/,
  /^ajv(?:-|$)/, // compiles schemas: no route has one
  /^@scure\/bip39$/,
  /^age-encryption$/,
  /^@fastify\/cors$/,
];

it('a signer on SQLite and key files has no client of AWS or PostgreSQL, no schemas, mnemonics or age', async () => {
  const deployment = deploy(1);
  try {
    const loaded = await packagesLoaded(deployment);
    expect(loaded).toEqual(expect.arrayContaining(['fastify', 'zod', '@chainsafe/ssz']));
    expect(loaded.filter((name) => UNUSED.some((pattern) => pattern.test(name)))).toEqual([]);
  } finally {
    rmSync(deployment.folder, { recursive: true });
  }
});
