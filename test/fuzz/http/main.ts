// `make fuzz-http SECONDS=…`: schemathesis (a Python package) makes requests from the signer's own OpenAPI document,
// and asks a real signer that has every route and keeps its records in SQLite: single requests, good and bad ones,
// and sequences that use what an earlier answer gave. A fault is a 5xx that no state of this signer has, an answer
// that the document does not list or whose body is not as it says, success without good credentials, no answer in
// time, and the end of the signer. Afterwards the signer has to sign; then it is sealed, and asked once more. A
// second signer is asked what management tokens may. TEST keys.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CustodyWorld, startCustody } from '../../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../../rehearsal/signer.ts';
import { keyTableDefinition } from '../../../signer/keys/table/definition.ts';
import { publicKeyOf, testSecret } from '../../support/keys.ts';
import { call, MAINNET_ROOT, randaoReveal, signCall, testKey } from '../../support/requests.ts';

const ROOT = join(import.meta.dirname, '../../..');
const HOOKS = join(import.meta.dirname, 'hooks.py');
/** The one that CI installs, then the one of the PATH. */
const CANDIDATES = [join(ROOT, 'build/schemathesis/bin/schemathesis'), 'schemathesis'];
/** Mainnet's: previous version, current version, epoch. */
const FORKS = ['0x00000000:0x01000000:74240', '0x03000000:0x04000000:269568', '0x04000000:0x05000000:364032'];
/** Of management tokens alone. */
const AUTH = '^/api/v1/auth/';
const SEAL = '/api/v1/chamber/seal';
const PUBLIC_KEYS_PATH = '/api/v1/eth2/publicKeys';
/** Where others refuse, these close the connection: clients take an error for a list without keys. */
const LISTS_OF_KEYS = ['--exclude-path', PUBLIC_KEYS_PATH, '--exclude-path', '/api/v1/eth2/distributed/accounts'];
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'ignored_auth',
  'use_after_free',
  'ensure_resource_availability',
];
/** Not `not_a_server_error`: a signer that is sealed answers 503 where it signed. */
const CHECKS_WHILE_SEALED = CHECKS.slice(1);
/** No answer for so long is a hang. Decrypting keystores and making keys take some of it. */
const ANSWER_SECONDS = 20;
/** A phase ends what it has begun. */
const MAX_LATE_SECONDS = 600;
const SEALED_SECONDS = 10;
const PUBLIC_KEYS = [testKey(0).publicKey, testKey(1).publicKey, publicKeyOf(testSecret(9_000))];
const enabled = { enabled: true };

interface Asked {
  readonly url: string;
  readonly token: string;
  readonly folder: string;
}

function findSchemathesis(): string | undefined {
  const found = CANDIDATES.find((program) => spawnSync(program, ['--version']).status === 0);
  if (found !== undefined) return found;
  const missing = 'schemathesis is missing: test/fuzz/http/requirements.txt says how to install it';
  if (process.env['REQUIRE_VECTORS'] === '1') throw new Error(missing);
  console.warn(`SKIPPED: ${missing}; REQUIRE_VECTORS=1 makes this a failure`);
  return undefined;
}

/** Tokens stand in a file, and not among arguments. */
function settings(token: string): string {
  return `hooks = "fuzz_http_hooks"

[parameters]
"path.identifier" = ${JSON.stringify(PUBLIC_KEYS)}

[headers]
Authorization = ${JSON.stringify(`Bearer ${token}`)}
`;
}

/** @returns whether it found nothing */
async function run(program: string, asked: Asked, seconds: number, options: readonly string[]): Promise<boolean> {
  const self = await call(`${asked.url}/api/v1/auth/tokens/lookup-self`, { token: asked.token });
  const file = join(asked.folder, 'schemathesis.toml');
  writeFileSync(file, settings(asked.token), { mode: 0o600 });
  copyFileSync(HOOKS, join(asked.folder, 'fuzz_http_hooks.py'));
  const args = ['--config-file', file, 'run', `${asked.url}/api/openapi.json`, '--url', asked.url, '--no-color'];
  const limits = ['--request-timeout', String(ANSWER_SECONDS), '--max-time', String(seconds), '--warnings', 'off'];
  const seed = process.env['SEED'] ? ['--seed', process.env['SEED']] : [];
  const child = spawn(program, [...args, ...limits, ...seed, '--continue-on-failure', ...options], {
    cwd: asked.folder,
    env: {
      ...process.env,
      PYTHONPATH: asked.folder,
      FUZZ_GENESIS_VALIDATORS_ROOT: MAINNET_ROOT,
      FUZZ_PUBLIC_KEYS: PUBLIC_KEYS.join(','),
      FUZZ_FORKS: FORKS.join(','),
      FUZZ_OWN_ACCESSOR: String(self.json['accessor']),
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => child.kill('SIGKILL'), (seconds + MAX_LATE_SECONDS) * 1000);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(late);
      resolve(code === 0);
    });
  });
}

async function startWithEveryRoute(world: CustodyWorld, table: string, folder: string): Promise<RunningSigner> {
  await world.dynamodb.createTable(keyTableDefinition(`${table}-keys`));
  mkdirSync(join(folder, 'keys'));
  for (const index of [0, 1])
    writeFileSync(join(folder, `keys/${index}.yaml`), `type: file-raw\nprivateKey: "${testKey(index).secret}"\n`);
  const recipients = [world.recipient];
  return startSigner({
    folder,
    config: {
      ...world.configuration(table, world.createCeremony()),
      key_sources: { filesystem: { paths: [join(folder, 'keys')] }, dynamodb: { table: `${table}-keys` } },
      anti_slashing: { backend: 'sqlite', path: join(folder, 'slashing.sqlite') },
      http: { key_manager_api: enabled },
      chamber: {
        keys: {
          generate: enabled,
          generate_keys: enabled,
          deposit_data: enabled,
          import: enabled,
          lifecycle: enabled,
          backup: { recipients },
        },
      },
    },
    env: world.environment(),
  });
}

/** How many requests had which answer, by the audit lines. */
function countAnswers({ log }: RunningSigner): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { audit, status } of log) {
    if (audit === true) counts[String(status)] = (counts[String(status)] ?? 0) + 1;
  }
  return counts;
}

/** @returns whether the signer had no fault of its own */
async function isWell(signer: RunningSigner): Promise<boolean> {
  const errors = signer.log.filter(({ level }) => level === 'error');
  const metrics = await (await fetch(signer.metricsUrl)).text();
  const escaped = /^svc_route_faults_total\{kind="(?:escaped|thrown)"\} [1-9].*/m.exec(metrics);
  console.log('answers by status', countAnswers(signer), `${errors.length} errors in the log`);
  if (errors.length > 0 || escaped !== null) console.log('FAULT', escaped?.[0], errors.slice(0, 5));
  return errors.length === 0 && escaped === null;
}

async function tokenOf({ url }: RunningSigner, root: string): Promise<string> {
  const all = { name: 'all', rules: [{ effect: 'allow' }] };
  assert.equal((await call(`${url}/api/v1/auth/policies`, { token: root, body: all })).status, 201);
  const made = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } });
  return String(made.json['token']);
}

/** What clients ask: the signer signs afterwards, and then is sealed. */
async function fuzzAsClient(program: string, signer: RunningSigner, root: string, seconds: number): Promise<boolean> {
  const { url, folder } = signer;
  const client = { url, token: await tokenOf(signer, root), folder };
  const others = ['--exclude-path', SEAL, ...LISTS_OF_KEYS, '--exclude-path-regex', AUTH];
  const list = (asked: string) => fetch(url + PUBLIC_KEYS_PATH, { headers: { authorization: `Bearer ${asked}` } });
  assert.equal((await list(client.token)).status, 200);
  await assert.rejects(list('sr_client_TEST_unknown'), 'a credential that nobody has gets no list, and no error');
  const isGood = await run(program, client, seconds, [...others, '--checks', CHECKS.join()]);
  const { token } = client;
  assert.equal((await signCall(url, PUBLIC_KEYS[0] ?? '', randaoReveal(), { token })).status, 200, 'it signs on');
  const sealed = await run(program, client, SEALED_SECONDS, ['--include-path', SEAL, '--checks', CHECKS.join()]);
  const { status } = await signCall(url, PUBLIC_KEYS[0] ?? '', randaoReveal(), { token });
  assert.equal(status, 503, 'a signer that is sealed signs nothing');
  await assert.rejects(list(token), 'a signer that is sealed gives no list, and no error');
  const answering = [...LISTS_OF_KEYS, '--checks', CHECKS_WHILE_SEALED.join()];
  const whileSealed = await run(program, client, SEALED_SECONDS, answering);
  return isGood && sealed && whileSealed;
}

/** Tokens and policies; the requests may end every token, so this signer is asked nothing else. */
function fuzzAsManagement(program: string, signer: RunningSigner, token: string, seconds: number): Promise<boolean> {
  const { url, folder } = signer;
  return run(program, { url, token, folder }, seconds, ['--include-path-regex', AUTH, '--checks', CHECKS.join()]);
}

const program = findSchemathesis();
if (program !== undefined) {
  const half = Math.ceil(Number(process.env['SECONDS'] || 120) / 2);
  const world = await startCustody();
  try {
    for (const fuzzIt of [fuzzAsClient, fuzzAsManagement]) {
      const folder = mkdtempSync(join(tmpdir(), 'strongroom-fuzz-http-'));
      const table = await world.createTable();
      const signer = await startWithEveryRoute(world, table, folder);
      try {
        const isGood = await fuzzIt(program, signer, await world.rootToken(table), half);
        if (!(await isWell(signer)) || !isGood) process.exitCode = 1;
      } finally {
        await signer.kill();
        rmSync(folder, { recursive: true, force: true });
      }
    }
  } finally {
    await world.close();
  }
}
