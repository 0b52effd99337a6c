// Clients of the scope `slashing_protection` that take, or send, a file of records and stand still: they displace their
// own, other callers have their turn at once, a DELETE of keys gets its records, and a database keeps its connections.
// Real processes. TEST keys.

import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { MAX_TRANSFERS } from '../../signer/http/routes/slashing-protection.ts';
import { deploy } from '../support/deployment.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { call, MAINNET_ROOT, TEST_TOKEN } from '../support/requests.ts';

const PATH = '/api/v1/chamber/slashing-protection';
const POLL = { timeout: LONGEST_WAIT_MS, interval: 100 };
const LOW = 'sr_client_TEST_TOKEN_of_a_backup_job_000000000001';
const PASSWORD = 'TEST password';
const METADATA = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
const CONFIG = {
  http: { key_manager_api: { enabled: true } },
  static_auth: {
    policies: [
      { name: 'low', rules: [{ effect: 'allow', scopes: ['slashing_protection'] }] },
      { name: 'full', rules: [{ effect: 'allow' }] },
    ],
    tokens: [
      { secret: LOW, policies: ['low'], name: 'low' },
      { secret: TEST_TOKEN, policies: ['full'], name: 'full' },
    ],
  },
};
const MANY = 2 * MAX_TRANSFERS;

let postgres: PostgresServer;
const running: RunningSigner[] = [];
const sockets: Socket[] = [];
beforeAll(async () => {
  postgres = await startPostgres();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map((signer) => signer.kill()));
});
afterAll(() => postgres.close());

async function start(url?: string): Promise<RunningSigner> {
  const store = url === undefined ? {} : { anti_slashing: { backend: 'postgres', url } };
  const signer = await deploy(0, { ...CONFIG, ...store }).start();
  running.push(signer);
  return signer;
}

/** More than the buffers between two processes take. */
function largeFile(): object {
  const votes = Array.from({ length: 300 }, (_, index) => ({
    source_epoch: String(1_000 + index),
    target_epoch: String(1_001 + index),
    signing_root: `0x${'ab'.repeat(32)}`,
  }));
  const data = Array.from({ length: 500 }, (_, index) => ({
    pubkey: `0x${(0xa00000 + index).toString(16).padStart(96, '0')}`,
    signed_blocks: [],
    signed_attestations: votes,
  }));
  return { metadata: METADATA, data };
}

/** A client that sends this, then reads nothing and sends nothing. */
function standsStill({ url }: RunningSigner, head: string, body = ''): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.once('data', () => socket.pause());
  socket.write(`${head}\r\nHost: a\r\nAuthorization: Bearer ${LOW}\r\n${body === '' ? '\r\n' : body}`);
  sockets.push(socket);
  return socket;
}

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';

async function importAndDelete({ url }: RunningSigner): Promise<unknown> {
  const secret = testSecret(7_700);
  const keystores = [JSON.stringify(encryptKeystore(secret, PASSWORD))];
  await call(`${url}/eth/v1/keystores`, { body: { keystores, passwords: [PASSWORD] } });
  const body = { pubkeys: [publicKeyOf(secret)] };
  return (await call(`${url}/eth/v1/keystores`, { method: 'DELETE', body })).json['data'];
}

async function connectionsOf(url: string): Promise<number> {
  const name = new URL(url).pathname.slice(1);
  const rows = await postgres.query(
    'postgres',
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = '${name}' AND application_name = 'strongroom'`,
  );
  return Number(rows[0]?.['count']);
}

describe.each(['sqlite', 'postgres'])('over %s, exports whose client does not read', (backend) => {
  it('displace their own: another caller has the whole file, and a DELETE its records', async () => {
    const url = backend === 'postgres' ? postgres.url(await postgres.createDatabase()) : undefined;
    const signer = await start(url);
    expect((await call(signer.url + PATH, { body: largeFile() })).status).toBe(200);
    const before = url === undefined ? 0 : await connectionsOf(url);
    const stalled = Array.from({ length: MANY }, () => standsStill(signer, `GET ${PATH} HTTP/1.1`));
    // Only so many go on; the newest of them stand still.
    await expect
      .poll(() => stalled.filter(({ bytesRead }) => bytesRead > 0).length, POLL)
      .toBeGreaterThanOrEqual(MAX_TRANSFERS);
    for (let round = 0; round < 2; round++) {
      const whole = await call(signer.url + PATH);
      expect([whole.status, (whole.json['data'] as unknown[]).length]).toEqual([200, 500]);
      expect(await importAndDelete(signer)).toMatchObject([{ status: 'deleted' }]);
    }
    if (url !== undefined) expect((await connectionsOf(url)) - before).toBeLessThanOrEqual(MAX_TRANSFERS + 1);
    expect((await call(`${signer.url}/healthcheck`, { token: null })).status).toBe(200);
  });
});

describe('imports that trickle, over postgres', () => {
  it('hold no connection before a part of the file is complete, and few after it', async () => {
    const url = postgres.url(await postgres.createDatabase());
    const signer = await start(url);
    await importAndDelete(signer);
    const before = await connectionsOf(url);
    const text = JSON.stringify(largeFile());
    const post = (bytes: number) =>
      standsStill(signer, `POST ${PATH} HTTP/1.1`, `${CHUNKED}${chunk(text.slice(0, bytes))}`);
    for (let count = 0; count < MAX_TRANSFERS; count++) post(100_000);
    expect(await importAndDelete(signer)).toMatchObject([{ status: 'deleted' }]);
    expect(await connectionsOf(url)).toBeLessThanOrEqual(before + 1); // the pool may have grown by one
    const begun = Array.from({ length: MANY }, () => post(2_000_000));
    await expect.poll(() => connectionsOf(url), POLL).toBeGreaterThan(before + 1);
    // Those that lost their place are cut.
    await expect
      .poll(() => begun.filter(({ destroyed }) => !destroyed).length, POLL)
      .toBeLessThanOrEqual(MAX_TRANSFERS);
    await expect.poll(() => connectionsOf(url), POLL).toBeLessThanOrEqual(before + 1 + MAX_TRANSFERS);
    // A slow database answers 503, which says to repeat the request.
    const own = { metadata: METADATA, data: [] };
    await expect.poll(async () => (await call(signer.url + PATH, { body: own })).status, POLL).toBe(200);
  });
});
