// From Web3Signer with its database to strongroom with the same options: nothing is signed before the import that the
// refusal names, the import is the one that the program has, and what was signed there is refused here.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { attestation, MAINNET_ROOT, signCall } from '../support/requests.ts';
import { createWeb3SignerDatabase } from '../support/web3signer-database.ts';

const KEY = publicKeyOf(testSecret(1));
const ENV = {
  SVC_SERVER__LISTEN_PORT: '0',
  SVC_METRICS__LISTEN_PORT: '0',
  SVC_METRICS__LISTEN_ADDRESS: '127.0.0.1',
  SVC_LOGGING__FORMAT: 'json',
};

let server: PostgresServer;
let folder = '';
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } });
  folder = mkdtempSync(join(tmpdir(), 'strongroom-front-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.close();
});

it('signs nothing before the record of the database is here, and nothing that contradicts it afterwards', async () => {
  const database = await createWeb3SignerDatabase(server, { genesisValidatorsRoot: MAINNET_ROOT });
  const key = Buffer.from(KEY.slice(2), 'hex');
  const [row] = await database.query('INSERT INTO validators (public_key) VALUES ($1) RETURNING id', [key]);
  const vote = 'INSERT INTO signed_attestations (validator_id, source_epoch, target_epoch) VALUES ($1, 10, 11)';
  await database.query(vote, [row?.['id']]);
  const keys = join(folder, 'keys');
  mkdirSync(keys);
  writeKeystore(keys, 'one', testSecret(1), 'password');
  const url = new URL(server.url(database.name));
  const command = [
    `--key-store-path=${keys}`,
    `--data-path=${folder}`,
    'eth2',
    `--slashing-protection-db-url=jdbc:postgresql://${url.host}${url.pathname}`,
    `--slashing-protection-db-username=${url.username}`,
  ];

  const refused = await runStrongroom(command, { env: ENV });
  expect(refused.code).toBe(78);
  const named = /`WEB3SIGNER_DB='([^']+)' strongroom ([^`]+)`/.exec(refused.stderr);
  expect(named?.[1]).toBe(`postgresql://${url.username}:PASSWORD@${url.host}${url.pathname}`);

  const printed = await runStrongroom([...command, '--print-config']);
  writeFileSync(join(folder, 'strongroom.yaml'), printed.stdout);
  const listed = 'SELECT FROM pg_stat_activity WHERE datname = $1 AND usesysid IS NOT NULL';
  // A session that was closed is still listed for a moment.
  await vi.waitUntil(
    async () => (await server.query('postgres', listed, [database.name])).length === 0,
    LONGEST_WAIT_MS,
  );
  const words = (named?.[2] ?? '').split(' ');
  const imported = await runStrongroom(words, { cwd: folder, env: { WEB3SIGNER_DB: `${url}` } });
  expect(imported).toMatchObject({ code: 0, stdout: expect.stringMatching(/keys: 1\nblocks: 0\nattestations: 1\n/) });

  const signer = await startSigner({ folder, command, env: ENV });
  try {
    const ask = (source: number, target: number) =>
      signCall(signer.url, KEY, attestation({ source, target }), { token: null });
    expect((await ask(10, 11)).status).toBe(412);
    expect((await ask(9, 12)).status).toBe(412);
    expect((await ask(11, 12)).status).toBe(200);
  } finally {
    await signer.stop();
  }
});
