// Whole signers in this process that share a state table and a key table: what one does, the other signs or stops
// signing.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import type { CeremonyBlock } from '../../../ceremony/definition.ts';
import { systemClock } from '../../../common/observe/clock.ts';
import { createLogger } from '../../../common/observe/logger.ts';
import { type CustodyWorld, startCustody } from '../../../rehearsal/custody.ts';
import { loadConfig } from '../../../service/config/load.ts';
import { SERVICE_PARTS } from '../../../service/parts.ts';
import { chamberStatusSchema } from '../../../signer/api/chamber.ts';
import { DEFAULT_AWS_ACCESS } from '../../../signer/aws/access.ts';
import { openBlsCore } from '../../../signer/bls/open-either.ts';
import { type BootedSigner, boot } from '../../../signer/boot/boot.ts';
import { openCustody } from '../../../signer/boot/custody.ts';
import { createEnding } from '../../../signer/boot/ending.ts';
import { type OpenedKeyTable, openConfiguredKeyTable } from '../../../signer/boot/key-table.ts';
import { openTelemetry } from '../../../signer/boot/telemetry.ts';
import type { World } from '../../../signer/boot/world.ts';
import { networkOf } from '../../../signer/config/network.ts';
import type { Config } from '../../../signer/config/options.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { keyTableDefinition } from '../../../signer/keys/table/definition.ts';
import { keyOfRow } from '../../../signer/keys/table/rows.ts';
import { newTableKey } from '../../support/key-table.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { attestation, call, signCall } from '../../support/requests.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 50 };
const KEY = newTableKey(1);

const logger = createLogger({ level: 'error,audit=off', format: 'text', color: false }, process.stderr);
const clock = systemClock;
const inProcess: World = { logger, clock };

let world: CustodyWorld;
let folder: string;
let stateTable: string;
let keyTable: string;
let ceremony: CeremonyBlock;
let signers: { readonly signer: BootedSigner; readonly url: string }[] = [];
let tables = 0;

beforeAll(async () => {
  world = await startCustody();
  for (const [name, value] of Object.entries(world.environment())) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await world.close();
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-key-table-'));
  stateTable = await world.createTable();
  tables += 1;
  keyTable = `signer-keys-${tables}`;
  ceremony = world.createCeremony();
});
afterEach(async () => {
  for (const { signer } of signers) await signer.shutDown();
  signers = [];
  rmSync(folder, { recursive: true, force: true });
});

function configure(statusFilter: readonly string[] = ['active']): Config {
  const yaml = stringify(
    {
      ...world.configuration(stateTable, ceremony),
      server: { listen_address: '127.0.0.1', listen_port: 0 },
      metrics: { listen_address: '127.0.0.1', listen_port: 0 },
      key_sources: { dynamodb: { table: keyTable, refresh_interval_seconds: 1, status_filter: statusFilter } },
    },
    { aliasDuplicateObjects: false },
  );
  const source = { argv: ['-c', 'x'], env: {}, readFile: () => Buffer.from(yaml) };
  const loaded = loadConfig(source, { compiledCeremony: false });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
  return loaded.config;
}

async function startReplica(statusFilter?: readonly string[]) {
  const signer = await boot(configure(statusFilter), SERVICE_PARTS, inProcess);
  const replica = { signer, url: `http://127.0.0.1:${signer.listeners.http.port}` };
  signers.push(replica);
  await signer.keysLoaded;
  return replica;
}

/** The key table as one more replica has it, to change it with. */
async function administer(run: (table: OpenedKeyTable) => Promise<void>): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const config = configure();
  const ending = createEnding(inProcess.clock);
  const telemetry = await openTelemetry(config.opentelemetry, { ending }, inProcess, opened);
  const aws = DEFAULT_AWS_ACCESS;
  const network = networkOf(config, undefined);
  const custody = await openCustody(config, { aws, network, tableName: stateTable, telemetry }, inProcess, opened);
  const core = await openBlsCore({ prefer: 'portable', cores: 1, log: logger.module('signing') });
  opened.defer(() => core.close());
  const store = new KeyStore({}, { vault: core, clock });
  const parts = { aws, custody, store, telemetry };
  const table = await openConfiguredKeyTable(config.key_sources.dynamodb, parts, inProcess, opened);
  if (table === undefined) throw new Error('no key table');
  await run(table);
}

async function clientToken(url: string): Promise<string> {
  const token = await world.rootToken(stateTable);
  const policy = { name: 'vc', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] };
  expect(await call(`${url}/api/v1/auth/policies`, { token, body: policy })).toMatchObject({ status: 201 });
  return (await call(`${url}/api/v1/auth/tokens`, { token, body: { policies: ['vc'] } })).json['token'] as string;
}

it('a key created in the table signs on both replicas, and stops on both when it is inactive', async () => {
  await world.dynamodb.createTable(keyTableDefinition(keyTable));
  const [one, two] = [await startReplica(), await startReplica()];
  const token = await clientToken(one.url);
  let epoch = 10;
  const signAt = async (url: string) => {
    epoch += 1;
    return (await signCall(url, KEY.publicKey, attestation({ source: epoch, target: epoch + 1 }), { token })).status;
  };
  // the token is known there, the key is not
  await vi.waitFor(async () => expect(await signAt(two.url)).toBe(404), WAIT);
  await administer(async ({ rows }) => {
    await rows.create([KEY]);
    for (const { url } of [one, two]) await vi.waitFor(async () => expect(await signAt(url)).toBe(200), WAIT);
    await rows.setStatus([{ publicKey: KEY.publicKey, status: 'inactive' }]);
    for (const { url } of [one, two]) await vi.waitFor(async () => expect(await signAt(url)).toBe(404), WAIT);
  });
});

it('keys are counted by the status of their row, in the status and in the metric', async () => {
  await world.dynamodb.createTable(keyTableDefinition(keyTable));
  await administer(async ({ rows }) => {
    await rows.create([KEY]);
    await rows.setStatus([{ publicKey: KEY.publicKey, status: 'inactive' }]);
  });
  const { url, signer } = await startReplica(['inactive']);
  const token = await world.rootToken(stateTable);
  const status = chamberStatusSchema.parse((await call(`${url}/api/v1/chamber/status`, { token })).json);
  expect(status.keys.filter(({ count }) => count > 0)).toEqual([{ source: 'dynamodb', status: 'inactive', count: 1 }]);
  const metrics = await (await fetch(`http://127.0.0.1:${signer.listeners.metrics.port}/metrics`)).text();
  expect(metrics).toContain('svc_keys{source="dynamodb",status="inactive"} 1');
  expect(metrics).toContain('svc_keys{source="dynamodb",status="active"} 0');

  await administer(async ({ rows }) => {
    await rows.setStatus([{ publicKey: KEY.publicKey, status: 'active' }]);
    await vi.waitFor(async () => {
      const { keys } = chamberStatusSchema.parse((await call(`${url}/api/v1/chamber/status`, { token })).json);
      expect(keys.filter(({ count }) => count > 0)).toEqual([{ source: 'dynamodb', status: 'active', count: 1 }]);
    }, WAIT);
  });
});

it('a row that is refused makes the signer not ready, as a bad key file does, and says where', async () => {
  await world.dynamodb.createTable(keyTableDefinition(keyTable));
  await world.putRow(keyTable, { ...keyOfRow(KEY.publicKey), status: { S: 'active' } });
  const { url } = await startReplica();
  expect(await call(`${url}/healthcheck`)).toMatchObject({
    status: 503,
    json: {
      status: 'DOWN',
      checks: expect.arrayContaining([
        { id: 'keys', status: 'DOWN', detail: '1 row of the key table could not be loaded' },
        { id: 'chamber', status: 'UP' },
      ]),
    },
  });
});

it('a table that does not exist ends the start, and the message says how to make it', async () => {
  await expect(startReplica()).rejects.toThrow(/keys: .*signer-keys.*strongroom setup tables/);
});

it('a sealed signer has forgotten the keys of its table', async () => {
  await world.dynamodb.createTable(keyTableDefinition(keyTable));
  const { url } = await startReplica();
  await administer(async ({ rows }) => {
    await rows.create([KEY]);
  });
  const token = await world.rootToken(stateTable);
  await vi.waitFor(async () => {
    const metrics = signers[0]?.signer.listeners.metrics?.port;
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    expect(text).toContain('svc_keys{source="dynamodb",status="active"} 1');
  }, WAIT);
  expect(await call(`${url}/api/v1/chamber/seal`, { token, body: { reason: 'drill' } })).toMatchObject({ status: 200 });
  const metrics = signers[0]?.signer.listeners.metrics?.port;
  await vi.waitFor(async () => {
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    expect(text).toContain('svc_keys{source="dynamodb",status="active"} 0');
  }, WAIT);
});
