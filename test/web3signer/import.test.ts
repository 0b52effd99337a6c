// Web3Signer's database is merged as a whole or not at all: what it signed is refused here afterwards, a second run
// changes nothing, and a database that somebody still uses, of another network or of another schema is refused.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { MAINNET_ROOT } from '../support/requests.ts';
import { sized, someOf } from '../support/scale.ts';
import {
  block,
  checkOne,
  OTHER_ROOT,
  publicKeyOf,
  retiredKeys,
  stream,
  verdictName,
  vote,
} from '../support/slashing.ts';
import { createWeb3SignerDatabase, fillWithDuties } from '../support/web3signer-database.ts';
import { backend, expectRefused, folder, merge, records, server, session, settled, small } from './merged-database.ts';

const VALIDATORS = sized(200, 1_000);
const EPOCHS = 64;
const LONG_HISTORY = sized(5_000, 30_000);

describe(`a database of ${VALIDATORS} validators`, () => {
  it('is merged; conflicting duties are refused right after; a second run changes nothing', async () => {
    const database = await createWeb3SignerDatabase(server);
    await fillWithDuties(database, { validators: VALIDATORS, epochs: EPOCHS });

    await settled(database);
    const first = await merge(database);

    expect(first.summary).toMatchObject({ validators: VALIDATORS, attestations: VALIDATORS * EPOCHS, conflicts: 0 });
    expect(first.summary.blocks).toBe(VALIDATORS * (EPOCHS / 16));
    expect(first.findings).toEqual({
      lowWatermarks: VALIDATORS,
      highWatermark: { slot: null, epoch: null },
      disabled: [],
      beyond: [],
    });
    const merged = await records();
    const second = await merge(database);
    expect(second.summary).toMatchObject({ alreadyPresent: VALIDATORS * (EPOCHS + EPOCHS / 16), conflicts: 0 });
    expect(await records()).toEqual(merged);
    for (const key of [1, VALIDATORS / 2, VALIDATORS]) {
      expect(verdictName(await checkOne(backend, vote(key, EPOCHS - 1, EPOCHS, 'other')))).toBe('double_vote');
      expect(verdictName(await checkOne(backend, vote(key, EPOCHS - 2, EPOCHS + 1, 'x')))).toBe('surrounding_vote');
      expect(verdictName(await checkOne(backend, block(key, EPOCHS * 32, 'other')))).toBe('double_block');
      expect(verdictName(await checkOne(backend, block(key, EPOCHS * 32 - 1, 'x')))).toBe('block_below_low_water_mark');
      expect(verdictName(await checkOne(backend, vote(key, EPOCHS, EPOCHS + 1, 'next')))).toBe('safe');
      expect(verdictName(await checkOne(backend, block(key, EPOCHS * 32 + 1, 'next')))).toBe('safe');
    }
  });
});

describe('what a database says', () => {
  it('a long history: only its last entries are kept, and all of it is refused', async () => {
    const database = await createWeb3SignerDatabase(server);
    await fillWithDuties(database, { validators: 1, epochs: LONG_HISTORY });
    await settled(database);
    const { summary } = await merge(database);
    expect(summary.attestations).toBe(LONG_HISTORY);
    expect((await backend.status()).attestations).toBeLessThan(1_025);
    expect(verdictName(await checkOne(backend, vote(1, 3, 4, 'other')))).toMatch(/below_low_water_mark|surrounded/);
  });

  it('an entry without a root refuses everything at its place', async () => {
    const database = await small();
    await database.query('UPDATE signed_attestations SET signing_root = NULL WHERE target_epoch = 16');
    await database.query('UPDATE signed_blocks SET signing_root = NULL WHERE slot = 512');
    await settled(database);
    await merge(database);
    expect(verdictName(await checkOne(backend, vote(1, 15, 16, 'any')))).toBe('double_vote');
    expect(verdictName(await checkOne(backend, block(1, 512, 'any')))).toBe('double_block');
  });

  it('a low watermark beyond all entries, and one of a validator without entries, refuse what lies below', async () => {
    const database = await small();
    await database.query(
      'UPDATE low_watermarks SET slot = 9000, source_epoch = 280, target_epoch = 281 WHERE validator_id = 1',
    );
    await database.query('INSERT INTO validators (public_key) VALUES ($1)', [
      Buffer.from(publicKeyOf(3).slice(2), 'hex'),
    ]);
    await database.query('INSERT INTO low_watermarks VALUES (3, 9000, 281, 280)');
    await settled(database);
    const { findings } = await merge(database);
    expect(findings.lowWatermarks).toBe(3);
    for (const key of [1, 3]) {
      expect(verdictName(await checkOne(backend, block(key, 8999, 'x')))).toBe('block_below_low_water_mark');
      expect(verdictName(await checkOne(backend, vote(key, 280, 280, 'x')))).toBe('target_below_low_water_mark');
      expect(verdictName(await checkOne(backend, vote(key, 279, 290, 'x')))).toBe('source_below_low_water_mark');
      expect(verdictName(await checkOne(backend, block(key, 9000, 'x')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(key, 280, 281, 'x')))).toBe('safe');
    }
  });

  it('disabled validators and the high watermark are named', async () => {
    const database = await small();
    await database.query('UPDATE validators SET enabled = false WHERE id = 2');
    await database.query('UPDATE metadata SET high_watermark_slot = 700, high_watermark_epoch = 21');
    await settled(database);
    const { findings } = await merge(database);
    expect(findings).toMatchObject({ disabled: [publicKeyOf(2)], highWatermark: { slot: '700', epoch: '21' } });
  });

  it.each(['before', 'after'])('a fault right %s the merge: disabled validators sign nothing', async (when) => {
    const database = await small();
    await database.query('UPDATE validators SET enabled = false WHERE id = 2');
    await settled(database);
    const { importHistories } = backend;
    backend.importHistories = async (histories, options) => {
      const read = await Array.fromAsync(histories);
      if (when === 'after') await importHistories.call(backend, stream(read), options);
      throw new Error('the machine is gone');
    };
    await expect(merge(database)).rejects.toThrow('the machine is gone');
    expect(await retiredKeys(backend)).toEqual([publicKeyOf(2)]);
    expect(verdictName(await checkOne(backend, block(2, 9000, 'x')))).toBe('key_retired');

    backend.importHistories = importHistories;
    await settled(database);
    expect((await merge(database)).summary).toMatchObject({ validators: 2, conflicts: 0 });
    expect(await retiredKeys(backend)).toEqual([publicKeyOf(2)]);
    expect(verdictName(await checkOne(backend, block(1, 512, 'other')))).toBe('double_block');
  });

  it.each([
    'UPDATE signed_blocks SET slot = 18446744073709551615 WHERE id = (SELECT max(id) FROM signed_blocks WHERE validator_id = 2)',
    'UPDATE signed_attestations SET target_epoch = 9007199254740992 WHERE id = (SELECT max(id) FROM signed_attestations WHERE validator_id = 2)',
    'UPDATE low_watermarks SET slot = 9007199254740992 WHERE validator_id = 2',
  ])('a number that no chain reaches stops its key, and not the import: %s', async (change) => {
    const database = await small();
    await database.query(change);
    await settled(database);
    const { summary, findings } = await merge(database);
    expect([summary.validators, findings.beyond]).toEqual([2, [publicKeyOf(2)]]);
    expect(await retiredKeys(backend)).toEqual([publicKeyOf(2)]);
    expect(verdictName(await checkOne(backend, block(2, 9000, 'x')))).toBe('key_retired');
    expect(verdictName(await checkOne(backend, block(1, 512, 'other')))).toBe('double_block');
    expect(verdictName(await checkOne(backend, block(1, 9000, 'x')))).toBe('safe');
  });

  it('a root of zeros is none: no message has it', async () => {
    const database = await small();
    await database.query("UPDATE signed_attestations SET signing_root = decode(repeat('00', 32), 'hex')");
    await settled(database);
    expect((await merge(database)).summary).toMatchObject({ validators: 2, conflicts: 0 });
    expect(verdictName(await checkOne(backend, vote(1, 15, 16, 'any')))).toBe('double_vote');
  });

  it.each(someOf([7, 8, 9, 11], 2))('a schema of version %i is read', async (version) => {
    const { summary, findings } = await merge(await small({ version }));
    expect(summary).toMatchObject({ validators: 2, attestations: 32 });
    expect(findings).toMatchObject({ disabled: [], highWatermark: { slot: null, epoch: null } });
  });
});

describe('a database is refused as a whole', () => {
  it('of another network', async () => {
    await expectRefused(await small({ genesisValidatorsRoot: OTHER_ROOT }), /of another network/);
  });

  it('of a schema before 7 or after 12', async () => {
    await expectRefused(await small({ version: 6 }), /version 6, before 7/);
    await expectRefused(await small({ version: 13 }), /version 13, after 12/);
  });

  it('without one of the tables, or with none of them', async () => {
    const database = await small();
    await database.query('DROP TABLE low_watermarks');
    await settled(database);
    await expectRefused(database, /no table low_watermarks$/);
    const name = await server.createDatabase();
    await expectRefused({ name, query: database.query }, /no table validators, signed_blocks/);
  });

  const FAULTS = [
    ["UPDATE signed_attestations SET signing_root = '\\x01' WHERE validator_id = 2", /signing_root is not 32 bytes/],
    ['UPDATE signed_attestations SET source_epoch = -1 WHERE validator_id = 2', /source_epoch is not a whole number/],
    ["UPDATE validators SET public_key = '\\x02' WHERE id = 2", /public_key is not 48 bytes/],
    ['UPDATE signed_attestations SET validator_id = NULL WHERE id = 1', /names no validator/],
    ['DELETE FROM metadata', /does not say of which network/],
  ] as const;
  it.each(someOf(FAULTS, 4))('%s', async (change, problem) => {
    const database = await small();
    await database.query(change);
    await settled(database);
    await expectRefused(database, problem);
  });

  it('while another session is connected, or holds locks, or a transaction is prepared', async () => {
    const database = await small();
    await settled(database);
    const other = await session(database);
    await expectRefused(database, /1 other sessions are connected/);
    await other.query('BEGIN');
    await other.query('UPDATE low_watermarks SET slot = slot + 1');
    await expectRefused(database, /1 other transactions hold locks/);
    await other.query("PREPARE TRANSACTION 'left behind'");
    await other.end();
    await settled(database);
    await expectRefused(database, /1 other transactions hold locks/);
    await database.query("ROLLBACK PREPARED 'left behind'");
    await settled(database);
    expect((await merge(database)).summary.validators).toBe(2);
  });

  const SECOND_VOTE = '(SELECT id FROM signed_attestations ORDER BY id OFFSET 1 LIMIT 1)';
  const CHANGES = [
    'INSERT INTO signed_attestations (validator_id, source_epoch, target_epoch) VALUES (1, 40, 41)',
    'INSERT INTO signed_blocks (validator_id, slot) VALUES (2, 9000)',
    'DELETE FROM signed_attestations WHERE target_epoch = 1',
    `DELETE FROM signed_attestations WHERE id = ${SECOND_VOTE}`,
    'UPDATE low_watermarks SET slot = slot + 1',
    'UPDATE signed_blocks SET signing_root = NULL WHERE id = (SELECT max(id) FROM signed_blocks)',
    `UPDATE signed_attestations SET target_epoch = 9999 WHERE id = ${SECOND_VOTE}`,
    'UPDATE validators SET enabled = false WHERE id = 1',
  ];
  it.each(someOf(CHANGES, 5))('whose rows change while it is read: %s', async (change) => {
    const database = await small();
    const { importHistories } = backend;
    // Between the first history and the last look.
    backend.importHistories = (histories, options) =>
      importHistories.call(
        backend,
        (async function* () {
          let isChanged = false;
          for await (const history of histories) {
            if (!isChanged) {
              await database.query(change);
              await settled(database, 2);
            }
            isChanged = true;
            yield history;
          }
        })(),
        options,
      );
    await expectRefused(database, /its rows changed while it was read/);
  });

  it('that cannot be reached', async () => {
    const database = await small();
    await expectRefused({ ...database, name: 'not_there' }, /it cannot be read: database "not_there" does not exist/);
  });
});

describe('strongroom slashing import --from-web3signer', () => {
  async function run(...args: string[]) {
    const config = join(folder, 'strongroom.yaml');
    const store = { backend: 'sqlite', path: join(folder, 'command.sqlite') };
    writeFileSync(config, JSON.stringify({ network: 'mainnet', anti_slashing: store }));
    return runStrongroom(['slashing', ...args, '-c', config], { env: { OLD_DATABASE: url } });
  }
  let url: string;

  it('says what it merged, retires disabled keys, refuses with 2, and never shows the password', async () => {
    const database = await small({ genesisValidatorsRoot: MAINNET_ROOT });
    await database.query('UPDATE validators SET enabled = false WHERE id = 2');
    await settled(database);
    url = server.url(database.name);
    const done = await run('import', '--from-web3signer', 'env:OLD_DATABASE');
    expect(done).toMatchObject({ code: 0 });
    expect(done.stdout).toBe(
      'keys: 2\nblocks: 2\nattestations: 32\nlow watermarks: 2\nhigh watermark: none\nalready present: 0\nconflicts: 0\n' +
        `disabled there, retired here: 1\nretired: ${publicKeyOf(2)}\n`,
    );
    expect((await run('status')).stdout).toContain(`retired: ${publicKeyOf(2)} (tenure 1)\n`);

    await database.query('DROP TABLE database_version');
    await settled(database);
    const refused = await run('import', '--from-web3signer', url);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('refused as a whole, nothing was merged: it has no table database_version\n');
    expect(refused.stderr).toContain('warning: the URL of the database holds a password');
    url = url.replace(encodeURIComponent(server.password), 'wrong-hunter2');
    const denied = await run('import', '--from-web3signer', 'env:OLD_DATABASE');
    expect(denied).toMatchObject({ code: 2 });
    for (const { stdout, stderr } of [done, refused, denied]) {
      for (const secret of [server.password, encodeURIComponent(server.password), 'hunter2']) {
        expect(stdout + stderr).not.toContain(secret);
      }
    }
  });

  it('refuses a database with a record of the future, by row and key, and takes it with --accept-future', async () => {
    const rows = [
      [
        'UPDATE signed_attestations SET target_epoch = 9000000 WHERE id IN (SELECT max(id) FROM signed_attestations)',
        2,
      ],
      ['UPDATE signed_blocks SET slot = 900000000 WHERE validator_id = 1', 1],
      ['UPDATE low_watermarks SET slot = 900000000 WHERE validator_id = 2', 2],
    ] as const;
    for (const [change, id] of someOf(rows, 2)) {
      const database = await small({ genesisValidatorsRoot: MAINNET_ROOT });
      await database.query(change);
      await settled(database);
      url = server.url(database.name);
      const refused = await run('import', '--from-web3signer', 'env:OLD_DATABASE');
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toMatch(
        new RegExp(`nothing was imported: validators, id ${id}, key ${publicKeyOf(id)}, has .* \\(\\d+ \\w+ ahead\\)`),
      );
      expect((await run('status')).stdout).toContain('keys: 0\n');
      await settled(database);
    }
    expect(await run('import', '--from-web3signer', 'env:OLD_DATABASE', '--accept-future')).toMatchObject({ code: 0 });
  });

  it('takes a URL and no file, and no jdbc:', async () => {
    url = 'jdbc:postgresql://db/web3signer';
    expect(await run('import', 'file.json', '--from-web3signer', 'env:OLD_DATABASE')).toMatchObject({ code: 1 });
    expect((await run('import', '--from-web3signer', 'env:OLD_DATABASE')).stderr).toContain('write it without jdbc:');
    expect((await run('import', '--from-web3signer', 'env:NOT_SET')).stderr).toContain('NOT_SET, which is unset');
  });
});
