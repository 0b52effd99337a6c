// From Web3Signer with its database to strongroom with the same options: nothing is signed before the import that the
// refusal names, the import is the one that the program has, and what was signed there is refused here.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { web3SignerNames } from '../../service/commands/web3signer-name.ts';
import { publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { attestation, MAINNET_ROOT, signCall } from '../support/requests.ts';
import { createWeb3SignerDatabase } from '../support/web3signer-database.ts';

const KEY = publicKeyOf(testSecret(1));
/** EIP-3076, with one vote of a key that is not loaded here. */
const FOREIGN_FILE = JSON.stringify({
  metadata: { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT },
  data: [
    {
      pubkey: publicKeyOf(testSecret(2)),
      signed_blocks: [],
      signed_attestations: [{ source_epoch: '1', target_epoch: '2' }],
    },
  ],
});
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

/** Of a fleet's former signer, with one key that voted 10 > 11; and the command line of its package. */
async function moving(name: string) {
  const database = await createWeb3SignerDatabase(server, { genesisValidatorsRoot: MAINNET_ROOT });
  const key = Buffer.from(KEY.slice(2), 'hex');
  const [row] = await database.query('INSERT INTO validators (public_key) VALUES ($1) RETURNING id', [key]);
  const vote = 'INSERT INTO signed_attestations (validator_id, source_epoch, target_epoch) VALUES ($1, 10, 11)';
  await database.query(vote, [row?.['id']]);
  const own = join(folder, name);
  const keys = join(own, 'keys');
  mkdirSync(keys, { recursive: true });
  writeKeystore(keys, 'one', testSecret(1), 'password');
  const url = new URL(server.url(database.name));
  const command = [
    `--key-store-path=${keys}`,
    `--data-path=${own}`,
    'eth2',
    `--slashing-protection-db-url=jdbc:postgresql://${url.host}${url.pathname}?sslmode=disable`,
    `--slashing-protection-db-username=${url.username}`,
  ];
  const printed = await runStrongroom([...command, '--print-config']);
  writeFileSync(join(own, 'strongroom.yaml'), printed.stdout);
  const listed = 'SELECT FROM pg_stat_activity WHERE datname = $1 AND usesysid IS NOT NULL';
  return {
    own,
    url,
    command,
    /** What a refusal printed. */
    async run(words: string) {
      // A session that was closed is still listed for a moment.
      await vi.waitUntil(
        async () => (await server.query('postgres', listed, [database.name])).length === 0,
        LONGEST_WAIT_MS,
      );
      return runStrongroom(words.split(' '), { cwd: own, env: { WEB3SIGNER_DB: `${url}` } });
    },
  };
}

it('signs nothing before the record of the database is here, and nothing that contradicts it afterwards', async () => {
  const { own, url, command, run } = await moving('merged');
  const refused = await runStrongroom(command, { env: ENV });
  expect(refused.code).toBe(78);
  const named = /`WEB3SIGNER_DB='([^']+)' strongroom ([^`]+)`/.exec(refused.stderr);
  expect(named?.[1]).toBe(`postgresql://${url.username}:PASSWORD@${url.host}${url.pathname}`);
  const imported = await run(named?.[2] ?? '');
  expect(imported).toMatchObject({ code: 0, stdout: expect.stringMatching(/keys: 1\nblocks: 0\nattestations: 1\n/) });

  const signer = await startSigner({ folder: own, command, env: ENV });
  try {
    const ask = (source: number, target: number) =>
      signCall(signer.url, KEY, attestation({ source, target }), { token: null });
    expect((await ask(10, 11)).status).toBe(412);
    expect((await ask(9, 12)).status).toBe(412);
    expect((await ask(11, 12)).status).toBe(200);
  } finally {
    await signer.stop();
  }
  const file = join(own, 'record.json');
  const exported = await runStrongroom([...command, 'export', `--to=${file}`], { env: ENV });
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('exported the records of 1 key') });
  expect(exported.stderr).toMatch(/^warning: /m);
  const another = command.map((word) => word.replace(url.pathname, '/another'));
  expect(await runStrongroom(another, { env: ENV })).toMatchObject({ code: 78 });
});

it('neither starts nor exports because the record has something else in it', async () => {
  const { own, command, run } = await moving('waived');
  const foreign = join(own, 'foreign.json');
  writeFileSync(foreign, FOREIGN_FILE);
  expect(await runStrongroom([...command, 'import', `--from=${foreign}`], { env: ENV })).toMatchObject({ code: 0 });
  const file = join(own, 'record.json');
  for (const words of [[], ['export', `--to=${file}`]]) {
    const refused = await runStrongroom([...command, ...words], { env: ENV });
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining('was not merged into the record here') });
    expect(existsSync(file)).toBe(false);
  }
  const { stderr } = await runStrongroom(command, { env: ENV });
  const [, waiver = ''] = /`strongroom (slashing jump [^`]+)`/.exec(stderr) ?? [];
  expect(await run(`${waiver} --dry-run`)).toMatchObject({ code: 0 });
  expect(await runStrongroom(command, { env: ENV })).toMatchObject({ code: 78 });
  expect(await run(waiver)).toMatchObject({ code: 0 });
  expect(await run('slashing status -c strongroom.yaml')).toMatchObject({
    stdout: expect.stringMatching(/settled database of Web3Signer: 127\.0\.0\.1:\d+\/\w+/),
  });
  const signer = await startSigner({ folder: own, command, env: ENV });
  try {
    const late = await signCall(signer.url, KEY, attestation({ source: 10, target: 12 }), { token: null });
    expect(late.status).toBe(412);
  } finally {
    await signer.stop();
  }
});

it('an export of nothing says so', async () => {
  const own = join(folder, 'nothing');
  mkdirSync(own);
  const file = join(own, 'record.json');
  const exported = await runStrongroom([`--data-path=${own}`, 'eth2', 'export', `--to=${file}`], { env: ENV });
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('warning: the file says nothing') });
});

it.each([
  ['jdbc:postgresql://DB.example:5433/web3signer?user=signer', ['db.example:5433/web3signer']],
  ['jdbc:postgresql://db/web3signer', ['db:5432/web3signer']],
  ['postgresql://signer:TEST@db/web%33signer?sslmode=disable', ['db:5432/web3signer']],
  ['db:5432/web3signer', ['db:5432/web3signer']],
  ['jdbc:postgresql://[::1]:5432/w', ['[::1]:5432/w']],
  ['jdbc:postgresql://a,b:6000/w', ['a:5432/w', 'b:6000/w']],
  ['jdbc:postgresql:w', []],
  ['jdbc:postgresql://db/', []],
  ['jdbc:postgresql://db/w%zz', []],
  ['jdbc:h2:mem:w', []],
])('a database has one name, however its URL is written: %s', (url, names) => {
  expect(web3SignerNames(url)).toEqual(names);
});
