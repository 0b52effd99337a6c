// SIGHUP and POST /reload against the real program: new keys and tokens work, removed ones stop, nobody who asks
// meanwhile notices, and what cannot be read changes nothing.

import { generateKeyPairSync } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { Authority } from '../support/client-certificates.ts';
import { deploy } from '../support/deployment.ts';
import { writeRawKey } from '../support/keys.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const RELOADER = 'sr_client_TEST_TOKEN_that_may_reload_0000000001';
const OTHER = 'sr_client_TEST_TOKEN_declared_later_000000000001';
const POLICIES = [
  { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
  { name: 'reload', rules: [{ effect: 'allow', scopes: ['reload'] }] },
];
const TOKENS = [
  { secret: TEST_TOKEN, policies: ['full'] },
  { secret: RELOADER, policies: ['reload'] },
];

const RELOADS = sized(40, 200);

const deployment = deploy(0, { static_auth: { policies: POLICIES, tokens: TOKENS } });
const file = join(deployment.folder, 'strongroom.yaml');
let signer: RunningSigner;
let declared: string;
beforeAll(async () => {
  for (const index of [0, 1]) put(index);
  // Of a process that cannot be dumped, root alone may count the open files.
  signer = await deployment.start({ config: { server: { mlock: 'off' } } });
  declared = readFileSync(file, 'utf8');
});
afterAll(() => signer.stop());

/** The tokens and options as they were at the start, and so many keys. */
async function withKeys(keys: number): Promise<void> {
  writeFileSync(file, declared);
  rmSync(keyFolder, { recursive: true, force: true });
  mkdirSync(keyFolder);
  for (let index = 0; index < keys; index++) put(index);
  expect(await reloaded()).toMatchObject({ status: 'completed' });
  expect(await listed()).toEqual(sorted(...Array(keys).keys()));
}

const keyFolder = join(deployment.folder, 'keys');
const put = (index: number) => writeRawKey(keyFolder, `k${index}`, Buffer.from(testKey(index).secret.slice(2), 'hex'));
const take = (index: number) => rmSync(join(keyFolder, `k${index}.yaml`));
const keyOf = (index: number) => testKey(index).publicKey;
const sorted = (...indexes: readonly number[]) => indexes.map(keyOf).sort();

async function listed(): Promise<readonly string[]> {
  return JSON.parse((await call(`${signer.url}/api/v1/eth2/publicKeys`)).text);
}

async function reloaded({ url }: RunningSigner = signer): Promise<Record<string, unknown>> {
  const token = RELOADER;
  expect((await call(`${url}/reload`, { method: 'POST', token })).status).toBe(202);
  for (;;) {
    const { json } = await call(`${url}/reload`, { token });
    if (json['status'] !== 'running') return json;
    await setTimeout(5);
  }
}

function declare(change: Record<string, unknown>): void {
  writeFileSync(file, stringify({ ...(parse(declared) as Record<string, unknown>), ...change }));
}

describe('reload', () => {
  it('new keys sign, removed ones are unknown, and their history is kept', async () => {
    expect((await signCall(signer.url, keyOf(1), attestation({ source: 1, target: 3 }))).status).toBe(200);
    expect((await call(`${signer.url}/reload`, { token: RELOADER })).json).toEqual({ status: 'idle' });

    take(1);
    put(2);
    expect(await reloaded()).toMatchObject({ status: 'completed' });
    expect(await listed()).toEqual(sorted(0, 2));
    expect((await signCall(signer.url, keyOf(2), randaoReveal())).status).toBe(200);
    expect((await signCall(signer.url, keyOf(1), randaoReveal())).status).toBe(404);

    put(1);
    await reloaded();
    const other = attestation({ source: 2, target: 3 });
    expect((await signCall(signer.url, keyOf(1), other)).status).toBe(412);
  });

  it('SIGHUP does the same', async () => {
    await withKeys(3);
    for (const index of [3, 4, 5]) put(index);
    process.kill(signer.pid, 'SIGHUP');
    await signer.logged('the key files are loaded', { kept: 3, loaded: 3 }); // no other reload does that
    expect(await listed()).toEqual(sorted(0, 1, 2, 3, 4, 5));
  });

  it('takes the scope `reload`', async () => {
    await withKeys(1);
    for (const method of ['GET', 'POST']) {
      expect((await call(`${signer.url}/reload`, { method })).status).toBe(403);
      expect((await call(`${signer.url}/reload`, { method, token: null })).status).toBe(401);
    }
  });

  it('tokens: declared ones work from then on, removed ones are refused', async () => {
    await withKeys(1);
    const tokens = [
      { secret: OTHER, policies: ['full'] },
      { secret: RELOADER, policies: ['reload'] },
    ];
    declare({ static_auth: { policies: POLICIES, tokens } });
    expect(await reloaded()).toMatchObject({ status: 'completed' });
    expect((await signCall(signer.url, keyOf(0), randaoReveal())).status).toBe(403);
    expect((await call(`${signer.url}/api/v1/eth2/publicKeys`, { token: OTHER })).status).toBe(200);
  });

  it('a configuration that is refused changes no token, and the keys are read all the same', async () => {
    await withKeys(1);
    declare({ static_auth: { policies: [], tokens: [{ secret: OTHER, policies: ['nowhere'] }] } });
    put(1);
    expect(await reloaded()).toMatchObject({ status: 'completed_with_errors' });
    await signer.logged('the configuration is refused: its tokens stay as they were');
    expect(await listed()).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/reload`, { token: OTHER })).status).toBe(403);
  });

  it('tokens that would not start a signer change no token, and the keys are read all the same', async () => {
    await withKeys(1);
    const twice = { secret: OTHER, policies: ['full'] };
    declare({ static_auth: { policies: POLICIES, tokens: [twice, twice, ...TOKENS] } });
    put(1);
    expect(await reloaded()).toMatchObject({ status: 'completed_with_errors' });
    expect(await listed()).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/reload`, { token: OTHER })).status).toBe(403);
  });

  it('another option that was changed is named, and needs a restart', async () => {
    await withKeys(1);
    declare({ signing: { queue_buffer_size: 77 } });
    await reloaded();
    const line = await signer.logged('these options were changed, and need a restart');
    expect(line['options']).toEqual(['signing.queue_buffer_size']);
  });

  it('a key file that is broken keeps its key, and the answer says that something is wrong', async () => {
    await withKeys(2);
    writeFileSync(join(keyFolder, 'k1.yaml'), 'type: [');
    expect(await reloaded()).toMatchObject({
      status: 'completed_with_errors',
      lastError: '1 keys could not be loaded; the log names their files',
    });
    expect(await listed()).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/healthcheck`)).status).toBe(503);
    put(1);
    expect(await reloaded()).toMatchObject({ status: 'completed' });
    expect((await call(`${signer.url}/healthcheck`)).status).toBe(200);
  });

  it('a key folder that is gone fails the reload, and every key stays', async () => {
    await withKeys(1);
    rmSync(keyFolder, { recursive: true });
    expect(await reloaded()).toMatchObject({ status: 'failed' });
    expect((await signCall(signer.url, keyOf(0), randaoReveal())).status).toBe(200);
  });

  it('TLS files are read at once, before their poll is due, as is a chain that gained its intermediate', async () => {
    const own = deploy(1);
    const old = makeCertificate(own.folder, 'old');
    const config = {
      static_auth: { policies: POLICIES, tokens: TOKENS },
      tls: {
        mode: 'file',
        listen_port: 0,
        file: { cert_path: old.cert, key_path: old.key, reload_interval_seconds: 86_400 },
      },
    };
    const serving = await own.start({ config });
    const before = await fingerprintAt(serving.tlsUrl ?? '');
    const next = makeCertificate(own.folder, 'next');
    copyFileSync(next.cert, old.cert);
    copyFileSync(next.key, old.key);
    await reloaded(serving);
    expect(await fingerprintAt(serving.tlsUrl ?? '')).not.toBe(before);
    const root = await Authority.root('root');
    const issued = await (await root.intermediate('between')).issue('CN=localhost', { usage: 'server' });
    const [leaf = ''] = issued.cert.split(/(?<=-----END CERTIFICATE-----)/);
    writeFileSync(old.key, issued.key);
    for (const [cert, isWhole] of [[leaf, false] as const, [issued.cert, true] as const]) {
      writeFileSync(old.cert, cert);
      await reloaded(serving);
      expect(await isTrusted(serving.tlsUrl ?? '', root.pem)).toBe(isWhole);
    }
    await serving.stop();
  });

  it(`${RELOADS} reloads under load: no request fails, no key that stays vanishes, nothing is left open`, async () => {
    await withKeys(8);
    await reloaded();
    const files = openFiles(signer);
    const over = new AbortController();
    const statuses = new Set<number>();
    const missing = new Set<string>();
    const asking = [0, 1, 2].map(async (index) => {
      while (!over.signal.aborted) {
        statuses.add((await signCall(signer.url, keyOf(index), randaoReveal())).status);
        const present = new Set(await listed());
        for (const key of sorted(0, 1, 2, 3, 4, 5)) if (!present.has(key)) missing.add(key);
      }
    });
    for (let round = 0; round < RELOADS; round++) {
      if (round % 2 === 0) take(6);
      else put(6);
      expect(await reloaded()).toMatchObject({ status: 'completed' });
    }
    over.abort();
    await Promise.all(asking);
    expect([...statuses]).toEqual([200]);
    expect([...missing]).toEqual([]);
    expect(openFiles(signer)).toBeLessThanOrEqual(files + 8); // connections of the clients above
  });
});

// The answer of GET /reload is all that a deploy hook sees: it never says `completed` of what stays as it was.

describe('what cannot be used is no completed reload', () => {
  const own = deploy(0, { static_auth: { policies: POLICIES, tokens: TOKENS } });
  const inFolder = (name: string): string => join(own.folder, name);
  const [keys, known, ca] = [inFolder('keys'), inFolder('clients.txt'), inFolder('ca.pem')];
  const ownFile = inFolder('strongroom.yaml');
  let [cert, key] = ['', ''];
  let other: ReturnType<typeof makeCertificate>;
  let running: RunningSigner;
  let good: ReadonlyMap<string, Buffer>;
  let certificate: string;

  beforeAll(async () => {
    ({ cert, key } = makeCertificate(own.folder, 'own'));
    other = makeCertificate(own.folder, 'other');
    writeFileSync(ca, (await Authority.root('clients')).pem);
    writeFileSync(known, `teku ${'ab'.repeat(32)}\n`);
    writeRawKey(keys, 'k0', Buffer.from(testKey(0).secret.slice(2), 'hex'));
    running = await own.start({
      config: {
        tls: {
          mode: 'file',
          listen_port: 0,
          file: { cert_path: cert, key_path: key, reload_interval_seconds: 86_400 },
          client_ca: ca,
          known_clients: [
            { name: 'fleet', file: known, policies: ['reload'] },
            { name: 'teku', subject: 'CN=teku', policies: ['reload'] },
          ],
        },
      },
    });
    const files = [cert, key, ca, known, join(keys, 'k0.yaml'), ownFile];
    good = new Map(files.map((path) => [path, readFileSync(path)]));
    certificate = await fingerprintAt(running.tlsUrl ?? '');
  });
  afterAll(() => running.stop());
  const putBack = async () => {
    mkdirSync(keys, { recursive: true });
    for (const [path, content] of good) writeFileSync(path, content);
    return await reloaded(running);
  };
  afterEach(putBack);

  const CERTIFICATE = 'the TLS files are refused, and the certificate in force stays; the log says why';
  const TOKENS_STAY = 'the declared tokens are refused and stay as they were; the log says why';
  const CONFIGURATION = 'the configuration is refused, and its tokens stay as they were; the log says why';
  const ONE_KEY = '1 keys could not be loaded; the log names their files';
  const withErrors = (...problems: readonly string[]) => ['completed_with_errors', problems.join('; ')] as const;
  const encrypted = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const PASSPHRASE = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  const newTls = (then: () => void): void => {
    copyFileSync(other.cert, cert);
    copyFileSync(other.key, key);
    then();
  };

  it.each<readonly [string, () => void, readonly ['completed_with_errors' | 'failed', string]]>([
    ['a certificate that does not fit its key', () => copyFileSync(other.cert, cert), withErrors(CERTIFICATE)],
    ['a key that does not fit its certificate', () => copyFileSync(other.key, key), withErrors(CERTIFICATE)],
    ['an empty certificate', () => writeFileSync(cert, ''), withErrors(CERTIFICATE)],
    ['a certificate that is gone', () => rmSync(cert), withErrors(CERTIFICATE)],
    ['a chain whose first certificate is another', () => chain(cert, other.cert, cert), withErrors(CERTIFICATE)],
    ['an empty key', () => writeFileSync(key, ''), withErrors(CERTIFICATE)],
    ['an encrypted key', () => writeFileSync(key, encrypted().export(PASSPHRASE)), withErrors(CERTIFICATE)],
    ['a key that is gone', () => rmSync(key), withErrors(CERTIFICATE)],
    ['authorities of clients that are none', () => writeFileSync(ca, 'x'), withErrors(CERTIFICATE)],
    ['authorities of clients that are gone', () => rmSync(ca), withErrors(CERTIFICATE)],
    ['authorities that are gone, with a new pair', () => newTls(() => rmSync(ca)), withErrors(CERTIFICATE)],
    ['a line of no known client', () => writeFileSync(known, 'teku'), withErrors(TOKENS_STAY)],
    ['known clients that are gone', () => rmSync(known), withErrors(TOKENS_STAY)],
    ['a configuration that is none', () => writeFileSync(ownFile, '['), withErrors(CONFIGURATION)],
    ['a configuration that is gone', () => rmSync(ownFile), withErrors(CONFIGURATION)],
    ['a key file that is none', () => writeFileSync(join(keys, 'k0.yaml'), '['), withErrors(ONE_KEY)],
    [
      'all of it at once',
      () => {
        for (const path of [cert, known, join(keys, 'k0.yaml')]) writeFileSync(path, '[');
      },
      withErrors(TOKENS_STAY, CERTIFICATE, ONE_KEY),
    ],
    [
      'a certificate and a key folder that are gone',
      () => {
        rmSync(cert);
        rmSync(keys, { recursive: true });
      },
      ['failed', `${CERTIFICATE}; the log of the signer says why`],
    ],
  ])('%s', async (_what, change, [status, lastError]) => {
    change();
    // Twice: what was refused before is still refused.
    for (const _ of [1, 2]) expect(await reloaded(running)).toMatchObject({ status, lastError });
    expect(await fingerprintAt(running.tlsUrl ?? '')).toBe(certificate);
    expect(await putBack()).toEqual({ status: 'completed', lastOperationTime: expect.any(String) });
  });

  it('a certificate that was renewed with its key is in force when the reload is completed', async () => {
    newTls(() => undefined);
    expect(await reloaded(running)).toMatchObject({ status: 'completed' });
    expect(await fingerprintAt(running.tlsUrl ?? '')).not.toBe(certificate);
  });
});

function chain(into: string, ...certificates: readonly string[]): void {
  writeFileSync(into, Buffer.concat(certificates.map((path) => readFileSync(path))));
}

/** 0 where the system does not show them. */
function openFiles({ pid }: RunningSigner): number {
  if (process.platform !== 'linux') return 0;
  return readdirSync(`/proc/${pid}/fd`).length;
}

function fingerprintAt(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    }).on('error', reject);
  });
}

function isTrusted(url: string, ca: string): Promise<boolean> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const trust = { ca, rejectUnauthorized: false, checkServerIdentity: () => undefined };
    const socket = connect({ host, port: Number(port), ...trust }, () => {
      resolve(socket.authorized);
      socket.destroy();
    }).on('error', reject);
  });
}
