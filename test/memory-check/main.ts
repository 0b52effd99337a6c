// `make check-memory`: where the secrets of a running signer are. It loads keys in every way that the service has,
// signs, imports, removes, and is searched (search.ts); then so is one with a signer state (stateful.ts), and the core
// of one more of each, unless CORE=0. A validator key or master key outside of locked memory, a key that was removed,
// or a keystore's password or derived key anywhere ends this with 1. What else is found is printed. TEST secrets only.

import { createHash, scryptSync } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';
import { dumpedProgram } from './core.ts';
import { encodings, type Secret, search, searchCore, TAKES_SNAPSHOTS, texts } from './search.ts';
import { searchStateful } from './stateful.ts';

const FILE_PASSWORD = 'TEST password of a keystore in a file 0001';
const DESCRIBED_PASSWORD = 'TEST password of a described keystore 0006';
const IMPORT_PASSWORD = 'TEST password of an imported keystore 0002';
const PERSIST_SECRET = 'TEST persist secret of the memory check 0003';
const WRONG_TOKEN = 'sr_client_TEST_TOKEN_that_nobody_gave_out_00004';
const SCOPES = ['sign', 'public_keys', 'list_keys', 'import_keystores', 'delete_keys'];
const ROUNDS = 200;
const SCRYPT = { kind: 'scrypt', n: 2 ** 14, r: 8, p: 1 } as const;

function derivedKey(keystore: object, password: string): Buffer {
  const { crypto } = keystore as { crypto: { kdf: { params: { salt: string; n: number; r: number; p: number } } } };
  const { salt, n: N, r, p } = crypto.kdf.params;
  return scryptSync(password, Buffer.from(salt, 'hex'), 32, { N, r, p, maxmem: 2 ** 28 });
}

const [raw, filed, imported, removed, listed, described] = [9_001, 9_002, 9_003, 9_004, 9_005, 9_006].map((number) =>
  testSecret(number),
) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array];
const filedKeystore = encryptKeystore(filed, FILE_PASSWORD, SCRYPT);
const describedKeystore = encryptKeystore(described, DESCRIBED_PASSWORD, SCRYPT);
const importedKeystore = encryptKeystore(imported, IMPORT_PASSWORD, SCRYPT);
const removedKeystore = encryptKeystore(removed, IMPORT_PASSWORD, SCRYPT);

const SECRETS: readonly Secret[] = [
  { name: 'key of a raw file', allowed: 'locked', patterns: encodings(raw) },
  { name: 'key of a file of several', allowed: 'locked', patterns: encodings(listed) },
  { name: 'key of a described keystore', allowed: 'locked', patterns: encodings(described) },
  { name: 'key of a keystore file', allowed: 'locked', patterns: encodings(filed) },
  { name: 'key of an import', allowed: 'locked', patterns: encodings(imported) },
  { name: 'key that was removed', allowed: 'nowhere', patterns: encodings(removed) },
  { name: 'password of a keystore file', allowed: 'nowhere', patterns: texts(FILE_PASSWORD) },
  { name: 'password of a described keystore', allowed: 'nowhere', patterns: texts(DESCRIBED_PASSWORD) },
  { name: 'password of an import', allowed: 'told', patterns: texts(IMPORT_PASSWORD) },
  {
    name: 'derived key of a keystore file',
    allowed: 'nowhere',
    patterns: encodings(derivedKey(filedKeystore, FILE_PASSWORD)),
  },
  {
    name: 'derived key of an import',
    allowed: 'nowhere',
    patterns: encodings(derivedKey(importedKeystore, IMPORT_PASSWORD)),
  },
  { name: 'persist secret (environment)', allowed: 'told', patterns: texts(PERSIST_SECRET) },
  { name: 'token of the configuration', allowed: 'told', patterns: texts(TEST_TOKEN) },
  { name: 'wrong token of a caller', allowed: 'told', patterns: texts(WRONG_TOKEN) },
  {
    name: 'SHA-256 of the token',
    allowed: 'told',
    patterns: encodings(createHash('sha256').update(TEST_TOKEN).digest()),
  },
];

function prepare(): Deployment {
  const deployment = deploy(0, {
    http: { key_manager_api: { enabled: true } },
    static_auth: {
      policies: [{ name: 'full', rules: [{ effect: 'allow', scopes: SCOPES }] }],
      tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
    },
    server: { mlock: 'required' },
  });
  const folder = deployment.folder;
  deployment.config['key_sources'] = {
    filesystem: {
      paths: [join(folder, 'keys')],
      keystores: { path: join(folder, 'keystores'), passwords_path: join(folder, 'passwords') },
    },
    memory: { persist_dir: 'imported', persist_secret: 'env:PERSIST' },
  };
  for (const name of ['keystores', 'passwords']) mkdirSync(join(folder, name));
  mkdirSync(join(folder, 'imported'), { mode: 0o700 });
  writeFileSync(
    join(folder, 'keys', 'raw.yaml'),
    `type: file-raw\nkeyType: BLS\nprivateKey: "0x${Buffer.from(raw).toString('hex')}"\n`,
  );
  // What only the YAML package reads.
  writeFileSync(
    join(folder, 'keys', 'several.yaml'),
    `# two keys\ntype: file-raw\nprivateKey:   0x${Buffer.from(listed).toString('hex').toUpperCase()} # the first\n---\n` +
      'type: file-keystore\nkeystoreFile: ../described.json\nkeystorePasswordFile: ../described.txt\n',
  );
  writeFileSync(join(folder, 'described.json'), JSON.stringify(describedKeystore));
  writeFileSync(join(folder, 'described.txt'), `${DESCRIBED_PASSWORD}\r\n`);
  writeFileSync(join(folder, 'keystores', 'filed.json'), JSON.stringify(filedKeystore));
  writeFileSync(join(folder, 'passwords', 'filed.txt'), FILE_PASSWORD);
  return deployment;
}

async function use(signer: RunningSigner): Promise<void> {
  const keystores = [importedKeystore, removedKeystore].map((one) => JSON.stringify(one));
  const passwords = [IMPORT_PASSWORD, IMPORT_PASSWORD];
  const url = `${signer.url}/eth/v1/keystores`;
  const answer = await call(url, { method: 'POST', body: { keystores, passwords } });
  if (answer.status !== 200 || answer.text.includes('"error"')) throw new Error(`the import failed: ${answer.text}`);
  for (let round = 0; round < ROUNDS; round++) {
    for (const secret of [raw, filed, imported, removed, listed, described]) {
      const vote = attestation({ source: round, target: round + 1 });
      const { status } = await signCall(signer.url, publicKeyOf(secret), vote);
      if (status !== 200) throw new Error(`a vote got ${status}`);
    }
    await signCall(signer.url, publicKeyOf(raw), randaoReveal(), { token: WRONG_TOKEN });
  }
  await call(url, { method: 'DELETE', body: { pubkeys: [publicKeyOf(removed)] } });
  await call(`${signer.url}/reload`, { method: 'POST' }).catch(() => undefined);
  await pause(2_000);
}

const faults: string[] = [];

async function searchOne(isDumped: boolean): Promise<void> {
  const deployment = prepare();
  const { folder } = deployment;
  const program = isDumped ? { program: dumpedProgram(folder) } : {};
  const signer = await deployment.start({ ...program, env: { PERSIST: PERSIST_SECRET, ...TAKES_SNAPSHOTS } });
  try {
    await use(signer);
    const status = (await call(signer.metricsUrl)).text;
    process.stdout.write(
      `keys whose memory is not locked: ${/^svc_[a-z_]*unlocked[a-z_]* (\d+)/m.exec(status)?.[1]}\n`,
    );
    if (isDumped) return void faults.push(...(await searchCore(signer, folder, SECRETS)));
    faults.push(...(await search(signer, folder, SECRETS)));
    const limits = readFileSync(`/proc/${signer.pid}/limits`, 'utf8');
    process.stdout.write(`core limit of the process: ${/^Max core file size +(\S+)/m.exec(limits)?.[1]}\n`);
  } finally {
    await signer.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

const kinds = process.env['CORE'] === '0' ? [false] : [false, true];
if (kinds.length === 1) process.stdout.write('SKIPPED: cores (CORE=0)\n');
for (const isDumped of kinds) {
  process.stdout.write(`\n${isDumped ? 'the core' : 'live memory and heap snapshot'}:\n`);
  await searchOne(isDumped);
  process.stdout.write('with a signer state:\n');
  faults.push(...(await searchStateful(isDumped)));
}
for (const fault of faults) process.stdout.write(`FAULT: ${fault}\n`);
process.exit(faults.length === 0 ? 0 : 1);
