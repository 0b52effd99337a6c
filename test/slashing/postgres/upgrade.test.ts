// A database of step 1 of the schema, which an earlier version of this program wrote: it is verified key by key,
// sealed, and refuses afterwards what it refused before. One that was tampered with is left as it is.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { POSTGRES_MIGRATIONS } from '../../../enclave/slashing/postgres/tables/migrations.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { block, checkOne, collect, publicKeyOf, rootOf, verdictName, vote } from '../../support/slashing.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

const OLD_ROWS = readFileSync(new URL('../../vectors/slashing/postgres-step-1.sql', import.meta.url), 'utf8');

let server: PostgresServer;
let database: string;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

beforeEach(async () => {
  database = await server.createDatabase();
  const [step] = POSTGRES_MIGRATIONS;
  await server.query(
    database,
    `CREATE SCHEMA strongroom;
     CREATE TABLE strongroom.schema_version (version integer PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
                                             applied_at timestamptz NOT NULL DEFAULT now());
     ${step?.sql}; ${OLD_ROWS}`,
  );
});

const allRows = async () => {
  const tables = ['schema_version', 'binding', 'validators', 'blocks', 'attestations'];
  return Promise.all(
    tables.map((table) => server.query(database, `SELECT * FROM strongroom.${table} ORDER BY 1, 2, 3`)),
  );
};

describe('a database of step 1', () => {
  it('refuses and repeats afterwards what it did before, by any number of signers that open it at once', async () => {
    const signers = await Promise.all(Array.from({ length: 4 }, () => openTestBackend(server.url(database))));
    const [one, other] = signers;
    if (one === undefined || other === undefined) throw new Error('four signers');
    const verdicts = async (messages: Parameters<typeof checkOne>[1][]) => {
      const names: string[] = [];
      for (const message of messages) names.push(verdictName(await checkOne(other, message)));
      return names;
    };
    expect(await verdicts([block(1, 20, 'a'), block(1, 20, 'b'), block(1, 25, 'b'), block(1, 9, 'b')])).toEqual([
      'repeat',
      'double_block',
      'safe',
      'block_below_low_water_mark',
    ]);
    expect(await verdicts([vote(1, 3, 4, 'v'), vote(1, 2, 5, 'b'), vote(1, 5, 7, 'b')])).toEqual([
      'repeat',
      'surrounding_vote',
      'safe',
    ]);
    expect(await verdicts([block(2, 40, 'i'), block(2, 41, 'i'), vote(2, 7, 8, 'i'), vote(2, 6, 9, 'j')])).toEqual([
      'double_block',
      'repeat',
      'double_vote',
      'double_vote',
    ]);
    expect(await verdicts([block(3, 110, 'old'), vote(3, 5, 6, 'old'), block(3, 100_000, 'far')])).toEqual([
      'block_below_low_water_mark',
      'source_below_low_water_mark',
      'repeat',
    ]);
    expect(await verdicts([vote(4, 0, 1, 'n')])).toEqual(['safe']);
    expect(await one.status()).toMatchObject({ validators: 4, blocks: 7, attestations: 8 });
    const [first] = await collect(one.exportHistories([publicKeyOf(1)]));
    expect(first?.blocks).toEqual(
      [10, 20, 25, 30].map((slot) => ({ slot, signingRoot: rootOf(slot === 25 ? 'b' : 'a') })),
    );
    const ids = await Promise.all(signers.map(async (signer) => (await signer.identity()).id));
    expect(new Set(ids).size).toBe(1);
    for (const signer of signers) await signer.close();
  });

  const damages: Record<string, string> = {
    'a block that was deleted': 'DELETE FROM strongroom.blocks WHERE slot = 20',
    'a vote that was moved': 'UPDATE strongroom.attestations SET source_epoch = 2 WHERE target_epoch = 4',
    'a mark that was lowered': 'UPDATE strongroom.validators SET highest_slot = 20 WHERE id = 1',
    'a root that was taken away': 'UPDATE strongroom.blocks SET signing_root = NULL WHERE slot = 30',
    'a block that was added': "INSERT INTO strongroom.blocks VALUES (4, 1, NULL, decode(repeat('00', 16), 'hex'))",
  };
  it.each(Object.entries(damages))('is not upgraded with %s, and stays as it was', async (_name, sql) => {
    await server.query(database, sql);
    const before = await allRows();
    await expect(openTestBackend(server.url(database))).rejects.toMatchObject({ reason: 'slashing_integrity' });
    expect(await allRows()).toEqual(before);
  });

  it('is not upgraded with another key', async () => {
    const other = openTestBackend(server.url(database), { integrityKey: Buffer.alloc(32, 8) });
    await expect(other).rejects.toThrow('another key');
  });

  it('has no head without a seal afterwards: one that comes back in the old form is damage', async () => {
    const [old] = await server.query(database, 'SELECT * FROM strongroom.validators WHERE id = 1');
    const backend = await openTestBackend(server.url(database));
    expect(verdictName(await checkOne(backend, block(1, 31, 'a')))).toBe('safe');
    const columns = Object.keys(old ?? {}).filter((name) => name !== 'id');
    const changes = columns.map((name, index) => `${name} = $${index + 1}`).join(', ');
    const values = columns.map((name) => old?.[name]);
    await server.query(database, `UPDATE strongroom.validators SET ${changes}, digests = NULL WHERE id = 1`, values);
    expect(verdictName(await checkOne(backend, block(1, 32, 'a')))).toBe('slashing_integrity');
    await backend.close();
  });
});
