// The life of keys by the CLI alone, on the real signer with a key table: imported, generated, deposited to, stopped
// and deleted.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import type { KeyListAnswer, KeyPatchAnswer } from '../../signer/api/key-answers.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { interchangeOf } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { call } from '../support/requests.ts';
import { runShell } from './transcript.ts';

const NUMBERS = [1, 2, 3];
const KEYS = NUMBERS.map((number) => publicKeyOf(testSecret(number)));

let folder: string;
let world: CustodyWorld;
let signer: RunningSigner;
let token: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
  world = await startCustody();
  const state = await world.createTable();
  await world.dynamodb.createTable(keyTableDefinition('keys'));
  const enabled = { enabled: true };
  signer = await startSigner({
    env: world.environment(),
    config: {
      ...world.configuration(state, world.createCeremony()),
      key_sources: { dynamodb: { table: 'keys' } },
      chamber: {
        keys: {
          generate: enabled,
          generate_keys: enabled,
          deposit_data: enabled,
          import: enabled,
          lifecycle: enabled,
          backup: { recipients: [world.recipient] },
        },
      },
    },
  });
  const root = await world.rootToken(state);
  const policy = { name: 'keys', rules: [{ effect: 'allow' }] };
  await call(`${signer.url}/api/v1/auth/policies`, { token: root, body: policy });
  const created = await call(`${signer.url}/api/v1/auth/tokens`, { token: root, body: { policies: ['keys'] } });
  token = String(created.json['token']);

  mkdirSync(join(folder, 'keystores'));
  for (const number of NUMBERS) {
    const keystore = encryptKeystore(testSecret(number), `TEST password ${number}`);
    writeFileSync(join(folder, `keystores/${number}.json`), JSON.stringify(keystore));
    writeFileSync(join(folder, `keystores/${number}.password`), `TEST password ${number}\n`);
  }
  writeFileSync(join(folder, 'records-in.json'), JSON.stringify(interchangeOf(KEYS)));
  writeFileSync(join(folder, 'keys.txt'), `${KEYS.join('\n')}\n`);
});

afterAll(async () => {
  await signer.stop();
  await world.close();
  rmSync(folder, { recursive: true });
});

function operator(args: string) {
  const env = {
    SVC_OPERATOR_SIGNER_URL: signer.url,
    SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true',
    SVC_OPERATOR_TOKEN: token,
  };
  return runShell(`strongroom operator keys ${args}`, { folder, env });
}

async function operatorJson<T>(args: string): Promise<T> {
  const { code, stdout, stderr } = await operator(`${args} --json`);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

const text = (file: string) => readFileSync(join(folder, file), 'utf8');
const written = (file: string) => JSON.parse(text(file)) as never;

describe('the life of keys', () => {
  it('an import of a directory, in batches, with its slashing protection records', async () => {
    const args = 'import keystores --storage table --slashing-protection records-in.json --batch-size 2';
    const { data } = await operatorJson<KeyPatchAnswer>(args);
    expect(data).toMatchObject(
      KEYS.map((pubkey) => ({ pubkey, status: 'imported', file: expect.stringMatching(/\.json$/) })),
    );
    const again = await operatorJson<KeyPatchAnswer>(args);
    expect(again.data.map(({ status }) => status)).toEqual(['duplicate', 'duplicate', 'duplicate']);
  });

  it('keys that are generated, with deposit data and backups in files of their own', async () => {
    const address = `0x${'52'.repeat(20)}`;
    const args = `generate --count 3 --batch-size 2 --withdrawal-address ${address} --output deposits.json --backups backups`;
    const { keys } = await operatorJson<{ keys: { pubkey: string }[] }>(args);
    expect(keys).toHaveLength(3);
    const deposits: { pubkey: string }[] = written('deposits.json');
    expect(deposits.map(({ pubkey }) => `0x${pubkey}`)).toEqual(keys.map(({ pubkey }) => pubkey));
    for (const file of ['deposits.json', ...keys.map(({ pubkey }) => `backups/${pubkey}.age`)]) {
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    }
    // The folder is lost: the key table has them still, also where another generation made more.
    const backups = new Map(keys.map(({ pubkey }) => [pubkey, text(`backups/${pubkey}.age`)]));
    rmSync(join(folder, 'backups'), { recursive: true });
    const fetched = await operatorJson<KeyPatchAnswer>('backups --directory backups --batch-size 2');
    expect(new Set(fetched.data.map(({ pubkey, status }) => `${status} ${pubkey}`))).toEqual(
      new Set(keys.map(({ pubkey }) => `found ${pubkey}`)),
    );
    for (const [pubkey, backup] of backups) {
      expect(text(`backups/${pubkey}.age`)).toBe(backup);
      expect(statSync(join(folder, `backups/${pubkey}.age`)).mode & 0o777).toBe(0o600);
    }
    await operatorJson(`backups --directory backups --pubkeys ${keys[0]?.pubkey}`); // the same files are there
    const inTheWay = join(folder, `backups/${keys[0]?.pubkey}.age`);
    writeFileSync(inTheWay, 'of somebody else');
    expect(await operator('backups --directory backups')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('EEXIST'),
    });
    expect(readFileSync(inTheWay, 'utf8')).toBe('of somebody else');
    const pubkeys = keys.map(({ pubkey }) => pubkey).join(',');
    await operatorJson(`deposit-data --pubkeys ${pubkeys} --withdrawal-address ${address} --output again.json`);
    expect(written('again.json')).toEqual(deposits);
  });

  it('keys that stop, sign again, and are deleted with their records', async () => {
    const stopped = await operatorJson<KeyPatchAnswer>('deactivate --pubkeys-file keys.txt --yes');
    expect(stopped.data.map(({ status }) => status)).toEqual(['updated', 'updated', 'updated']);
    const inactive = await operatorJson<KeyListAnswer>('list --status inactive --source dynamodb');
    expect(inactive.keys.map(({ pubkey }) => pubkey).sort()).toEqual([...KEYS].sort());
    await operatorJson('activate --pubkeys-file keys.txt');
    await operatorJson('delete --pubkeys-file keys.txt --output records.json --batch-size 2 --yes');
    const records: { data: { pubkey: string; signed_blocks: unknown[] }[] } = written('records.json');
    expect(records.data.map(({ pubkey }) => pubkey).sort()).toEqual([...KEYS].sort());
    for (const { signed_blocks } of records.data) expect(signed_blocks).toMatchObject([{ slot: '2000' }]);
    const left = await operatorJson<KeyListAnswer>('list');
    expect(left.keys).toHaveLength(3);
  });
});
