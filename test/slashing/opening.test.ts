// What the start, and the offline commands, say of a slashing store: why it cannot be opened, in one line, and that it
// is new.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { SERVICE_STORES } from '../../service/stores.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { openSlashingBackend } from '../../signer/boot/slashing-protection/store.ts';
import type { Config } from '../../signer/config/options.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { loadGood } from '../config/loading.ts';
import { ownAddress } from '../support/own-address.ts';
import { startPostgres } from '../support/postgres.ts';

const NEW = 'a new slashing database: it knows nothing of what the keys signed before';

let folder: string;
let postgres: Awaited<ReturnType<typeof startPostgres>>;
let dynamodb: Awaited<ReturnType<typeof startDynamoDB>>;
let tables = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-opening-'));
  [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
  vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', dynamodb.endpoint);
  vi.stubEnv('AWS_REGION', 'eu-central-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'TEST');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'TEST');
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await Promise.all([postgres.close(), dynamodb.close()]);
  rmSync(folder, { recursive: true, force: true });
});

/** A configuration of each backend on a store that does not exist yet. */
const FRESH: Readonly<Record<string, () => Promise<Config>>> = {
  sqlite: async () => {
    tables += 1;
    return loadGood({ yaml: `anti_slashing: {path: ${folder}/${tables}.sqlite}` });
  },
  postgres: async () => {
    const url = postgres.url(await postgres.createDatabase());
    return loadGood({ yaml: 'anti_slashing: {backend: postgres}', env: { SVC_ANTI_SLASHING__URL: url } });
  },
  dynamodb: async () => {
    tables += 1;
    await dynamodb.createTable(tableDefinition(`records-${tables}`));
    return loadGood({ yaml: `anti_slashing: {backend: dynamodb, table: records-${tables}}` });
  },
};

/** Open and close; the messages of level warn. */
async function open(config: Config, network: 'mainnet' | 'hoodi' = 'mainnet'): Promise<string[]> {
  const lines: string[] = [];
  const logger = createLogger({ level: 'warn', format: 'json' }, { write: (line) => lines.push(line) });
  const backend = await openSlashingBackend(
    config.anti_slashing,
    { stores: SERVICE_STORES, network: publicNetwork(network) },
    { logger, clock: systemClock },
  );
  await backend.close();
  return lines.map((line) => String(JSON.parse(line).msg));
}

async function failure(config: Config, network?: 'mainnet' | 'hoodi'): Promise<string> {
  return open(config, network).then(
    () => 'it opened',
    (error: Error) => error.message.replaceAll(folder, 'FOLDER'),
  );
}

describe.each(Object.entries(FRESH))('a store of %s', (backend, fresh) => {
  it('that is new says so, once', async () => {
    const config = await fresh();
    expect(await open(config)).toContain(NEW);
    expect(await open(config)).not.toContain(NEW);
  });

  it('of another network says that, and not that it is unavailable', async () => {
    const config = await fresh();
    await open(config, 'hoodi');
    const message = await failure(config);
    expect(message).toMatch(/^anti_slashing\.(?:path|url|table) \S+: .*another .*genesis validators root/);
    expect(message).toContain('correct `network`, or give each network a store of its own');
    expect(message).not.toContain('unavailable');
    expect(message).toContain(backend === 'postgres' ? 'postgres://' : backend === 'sqlite' ? 'FOLDER' : 'records-');
  });
});

describe('a store that cannot be opened', () => {
  it('names the SQLite path and the system’s code', async () => {
    const missing = loadGood({ yaml: `anti_slashing: {path: ${folder}/missing/db.sqlite}` });
    expect(await failure(missing)).toBe(
      'anti_slashing.path FOLDER/missing/db.sqlite: the database file cannot be created or made private (ENOENT): there ' +
        'is no such file or folder: correct the path',
    );
    const directory = loadGood({ yaml: `anti_slashing: {path: ${folder}}` });
    expect(await failure(directory)).toContain('cannot be created or made private (not a regular file)');
  });

  it('names the database without its password, and why it does not answer', async () => {
    const server = createServer().listen(0, ownAddress(2));
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const url = `postgres://signer:hunter2@${ownAddress(2)}:${port}/records?sslmode=disable`;
    const message = await failure(
      loadGood({ yaml: 'anti_slashing: {backend: postgres}', env: { SVC_ANTI_SLASHING__URL: url } }),
    );
    expect(message).toContain(`anti_slashing.url postgres://${ownAddress(2)}:${port}/records: `);
    expect(message).toContain('ECONNREFUSED');
    expect(message).not.toContain('hunter2');
  });

  it('names the table that does not exist, and how it is made', async () => {
    const config = loadGood({ yaml: 'anti_slashing: {backend: dynamodb, table: nowhere}' });
    expect(await failure(config)).toMatch(/^anti_slashing\.table nowhere: .*does not exist.*strongroom setup tables/);
  });
});
