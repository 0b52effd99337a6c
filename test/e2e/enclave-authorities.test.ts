// An authority that the image names for one host vouches for no other: who holds the database's cannot answer as KMS or
// DynamoDB. Everything is called as an enclave calls it, over real TLS. The database and the collector are `localhost`,
// the endpoints of AWS are addresses of their own. TEST authorities.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, getCACertificates, type Server, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { createDynamoDBClient, DescribeTableCommand } from '../../signer/aws/dynamodb.ts';
import { openSlashingBackend, SHARED_STORES } from '../../signer/boot/slashing-protection/store.ts';
import { openTelemetry } from '../../signer/boot/telemetry.ts';
import type { Enclave, World } from '../../signer/boot/world.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { authoritiesOf, type NamedAuthorities } from '../../signer/tee/authorities.ts';
import { loadGood } from '../config/loading.ts';
import { makeCertificate } from '../support/certificates.ts';
import type { Parent } from '../support/enclave-parent.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';

const logger = createLogger({ level: 'error,audit=off', format: 'text', color: false }, { write: () => undefined });
const GIVES_UP_MS = 5_000;
const REFUSED = 'DEPTH_ZERO_SELF_SIGNED_CERT';
const INITIALISED = 'initialised: a new master key and root token are written';

let folder: string;
beforeAll(() => {
  // Roots that gRPC would take in place of the process-wide ones: an image has no environment.
  vi.stubEnv('GRPC_DEFAULT_SSL_ROOTS_FILE_PATH', undefined);
  folder = mkdtempSync(join(tmpdir(), 'strongroom-authorities-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A world whose image names these authorities; nothing else of an enclave is asked for here. */
function worldOf(named: NamedAuthorities): World {
  return { logger, clock: systemClock, enclave: { authorities: authoritiesOf(named) } as Enclave };
}

/** As in an image whose process-wide roots are these. */
async function withRoots<Result>(roots: readonly string[], run: () => Promise<Result>): Promise<Result> {
  const before = getCACertificates('default');
  setDefaultCACertificates(roots);
  try {
    return await run();
  } finally {
    setDefaultCACertificates(before);
  }
}

describe('a client of AWS', () => {
  /** What a call of `localhost` ends with, whose certificate is for `names`. */
  async function called(names: string, named: (authority: string) => NamedAuthorities, isRoot = false) {
    const { cert, key } = makeCertificate(folder, 'service', names);
    const authority = readFileSync(cert, 'utf8');
    const server = createSecureServer({ cert: authority, key: readFileSync(key), allowHTTP1: true }, (_, response) => {
      response.end(JSON.stringify({ Table: { TableName: 'answered' } }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = createDynamoDBClient({
      region: 'eu-central-1',
      endpoint: `https://localhost:${port}`,
      credentials: { accessKeyId: 'TEST', secretAccessKey: 'TEST' },
      authorities: authoritiesOf(named(authority)),
      maxAttempts: 1,
      connectTimeoutMs: LONGEST_WAIT_MS,
      requestTimeoutMs: LONGEST_WAIT_MS,
    });
    try {
      return await withRoots(isRoot ? [authority] : [], () =>
        client.send(new DescribeTableCommand({ TableName: 'any' })).then(
          ({ Table }) => Table?.TableName,
          (error: { readonly code?: string }) => error.code,
        ),
      );
    } finally {
      client.destroy();
      server.close();
    }
  }
  const HERE = 'DNS:localhost';
  const stranger = (): string => readFileSync(makeCertificate(folder, 'stranger').cert, 'utf8');

  it('takes the authority that is bound to the name of its host, and no certificate for another name', async () => {
    expect(await called(HERE, (authority) => ({ localhost: [authority] }))).toBe('answered');
    const code = await called('DNS:other.example.org', (authority) => ({ localhost: [authority] }));
    expect(code).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('takes the process-wide roots for a host without authorities of its own, and only for such a host', async () => {
    expect(await called(HERE, () => ({}), true)).toBe('answered');
    expect(await called(HERE, (authority) => ({ 'localhost.example.org': [authority] }))).toBe(REFUSED);
    expect(await called(HERE, () => ({ localhost: [stranger()] }), true)).toBe(REFUSED);
  });
});

describe('KMS and DynamoDB', () => {
  let world: EnclaveWorld;
  let fronts: readonly Server[];
  let authority: string;
  let endpoints: { readonly dynamodb: string; readonly kms: string };

  beforeAll(async () => {
    world = await startEnclaveWorld();
    const names = ['DNS:localhost', ...world.endpoints.map(({ loopback }) => `IP:${loopback}`)].join(',');
    const { cert, key } = makeCertificate(folder, 'impostor', names);
    authority = readFileSync(cert, 'utf8');
    const tls = { cert: authority, key: readFileSync(key) };
    const { dynamodb, kms } = world.custody;
    fronts = await Promise.all([serveTls(dynamodb.endpoint, tls), serveTls(kms.endpoint, tls)]);
    const [tables = '', keys = ''] = fronts.map(
      (front) => `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    );
    endpoints = { dynamodb: tables, kms: keys };
  });
  afterAll(async () => {
    for (const front of fronts) front.close();
    await world.close();
  });

  const hosts = (): readonly string[] => world.endpoints.map(({ loopback }) => loopback);

  /** How a start goes, as soon as the enclave says it. */
  const ending = (parent: Parent): Promise<unknown> =>
    vi.waitFor(
      () => {
        const last = parent.lines.find(({ msg }) => ['cannot start', 'unsealed', INITIALISED].includes(String(msg)));
        expect(last).toBeDefined();
        return last?.['msg'];
      },
      { timeout: LONGEST_WAIT_MS, interval: 50 },
    );

  it.each([
    ['the database’s host', () => ['localhost']],
    ['no host', () => []],
    ['KMS', () => hosts().slice(1)],
    ['DynamoDB', () => hosts().slice(0, 1)],
  ])('are refused under an authority that is bound to %s alone', async (_, bound) => {
    const parent = await world.startParent(undefined, endpoints);
    const before = world.custody.kms.calls.length;
    const enclave = await world.startEnclave({
      authorities: Object.fromEntries(bound().map((host) => [host, [authority]])),
    });
    try {
      expect(await ending(parent)).toBe('cannot start');
      expect(await world.custody.row(world.stateTable, 'MASTER_KEY')).toBeUndefined();
      expect(world.custody.kms.calls.slice(before)).toEqual([]);
    } finally {
      await enclave.kill();
      await parent.close();
    }
  });

  it('are called under the authority that is bound to each of them', async () => {
    const parent = await world.startParent(undefined, endpoints);
    const enclave = await world.startEnclave({
      authorities: Object.fromEntries(hosts().map((host) => [host, [authority]])),
    });
    try {
      expect(await ending(parent)).toBe(INITIALISED);
      expect(await world.custody.row(world.stateTable, 'MASTER_KEY')).toBeDefined();
      const named = parent.lines.filter(({ msg }) => String(msg).includes('alone vouch for this host'));
      expect(named.map(({ hostname }) => hostname)).toEqual(hosts());
    } finally {
      await enclave.kill();
      await parent.close();
    }
  });
});

describe('PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ tls: true });
  });
  afterAll(() => server.close());

  async function open(named: NamedAuthorities): Promise<void> {
    const url = server.url(await server.createDatabase(), '', 'localhost');
    const yaml = 'anti_slashing: {backend: postgres}';
    const { anti_slashing } = loadGood({ yaml, env: { SVC_ANTI_SLASHING__URL: url } });
    const parts = { stores: SHARED_STORES, network: publicNetwork('mainnet') };
    await (await openSlashingBackend(anti_slashing, parts, worldOf(named))).close();
  }

  it('is used under an authority that is bound to its host, and under no other', async () => {
    const authority = readFileSync(server.certificateFile, 'utf8');
    await open({ localhost: [authority] });
    await expect(open({})).rejects.toThrow('anti_slashing.url');
    await expect(open({ 'kms.eu-central-1.amazonaws.com': [authority] })).rejects.toThrow('anti_slashing.url');
    const stranger = readFileSync(server.strangerCertificateFile, 'utf8');
    await expect(open({ localhost: [stranger] })).rejects.toThrow('anti_slashing.url');
  });

  it('is used under the process-wide roots where no authority is bound to its host, and only there', async () => {
    const authority = readFileSync(server.certificateFile, 'utf8');
    const stranger = readFileSync(server.strangerCertificateFile, 'utf8');
    await withRoots([authority], () => open({}));
    await expect(withRoots([authority], () => open({ localhost: [stranger] }))).rejects.toThrow('anti_slashing.url');
  });
});

describe('the collector of traces', () => {
  /** How many exports it had from a signer that traced one request and ended. */
  async function exported(
    named: (authority: string) => NamedAuthorities,
    { isRoot = false, isWanted = false } = {},
  ): Promise<number> {
    const { cert, key } = makeCertificate(folder, 'collector');
    const authority = readFileSync(cert, 'utf8');
    let exports = 0;
    const collector = createSecureServer({ cert: authority, key: readFileSync(key) });
    collector.on('stream', (stream: ServerHttp2Stream) => {
      stream.resume().on('end', () => {
        exports += 1;
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.end(Buffer.alloc(5));
      });
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const { port } = collector.address() as AddressInfo;
    const { opentelemetry } = loadGood({
      yaml: `opentelemetry: { enabled: true, endpoint: 'https://localhost:${port}' }`,
    });
    await withRoots(isRoot ? [authority] : [], async () => {
      await using opened = new AsyncDisposableStack();
      const parts = { ending: { leftMs: () => GIVES_UP_MS } };
      const { tracing } = await openTelemetry(opentelemetry, parts, worldOf(named(authority)), opened);
      tracing?.startRequest({ method: 'GET', route: '/upcheck' }).end();
      // By itself after some seconds; the end waits for two at most.
      if (isWanted) await expect.poll(() => exports).toBe(1);
    });
    collector.close();
    return exports;
  }

  it('is used under an authority that is bound to its host, and under no other', async () => {
    expect(await exported((authority) => ({ localhost: [authority] }), { isWanted: true })).toBe(1);
    expect(await exported(() => ({}))).toBe(0);
    expect(await exported((authority) => ({ 'db.example.org': [authority] }))).toBe(0);
  });

  it('is used under the process-wide roots where no authority is bound to its host, and only there', async () => {
    const { cert } = makeCertificate(folder, 'stranger-to-the-collector');
    expect(await exported(() => ({}), { isRoot: true, isWanted: true })).toBe(1);
    expect(await exported(() => ({ localhost: [readFileSync(cert, 'utf8')] }), { isRoot: true })).toBe(0);
  });
});

/** TLS for a stand-in that has none. */
async function serveTls(endpoint: string, tls: { readonly cert: string; readonly key: Buffer }): Promise<Server> {
  const port = Number(new URL(endpoint).port);
  const server = createServer(tls, (secure) => {
    const upstream = connect({ host: '127.0.0.1', port });
    secure.pipe(upstream).pipe(secure);
    secure.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => secure.destroy()).on('close', () => secure.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}
