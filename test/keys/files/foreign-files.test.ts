// What tools leave beside keys is no fault of the keys: it is ignored, with one line by kind and count. What may be a
// damaged keystore, and what a descriptor names as one, is reported. A byte order mark is none of a file. TEST keys.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import type { ForeignKind } from '../../../signer/keys/files/foreign-file.ts';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';
import { keystoreText } from './key-documents.ts';
import { directory, log, pool, store } from './key-folder.ts';

const PASSWORD = 'TEST password';
const zeros = (bytes: number) => '00'.repeat(bytes);
const BOM = '\uFEFF';

/** As staking-deposit-cli, ethdo, Lighthouse and Web3Signer write them; each kind has a file here. */
const FOREIGN: Readonly<Record<Exclude<ForeignKind, 'secp256k1_keys'>, Readonly<Record<string, unknown>>>> = {
  deposit_data: {
    'deposit_data-1700000000.json': [{ pubkey: zeros(48), amount: 32_000_000_000, deposit_data_root: zeros(32) }],
    'mine.json': [{ deposit_data_root: zeros(32) }],
  },
  signed_exits: {
    'signed_exit_transaction-1-1700000000.json': {},
    'exit.json': { message: { epoch: '1', validator_index: '2' }, signature: zeros(96) },
  },
  withdrawal_changes: {
    'bls_to_execution_change-1700000000.json': [],
    'change.json': [{ message: { validator_index: '1', to_execution_address: `0x${zeros(20)}` } }],
  },
  slashing_records: {
    'slashing_protection.json': { metadata: { interchange_format_version: '5' }, data: [] },
    'record.json': { metadata: { interchange_format_version: '5' }, data: [] },
  },
  lists: { 'pubkeys.json': [zeros(48)] },
};

let keystores: string;
let passwords: string;
beforeEach(() => {
  [keystores, passwords] = [join(directory.path, 'keystores'), join(directory.path, 'passwords')];
  for (const folder of [keystores, passwords]) mkdirSync(folder);
  put('keystore-m_12381_3600_0_0_0', JSON.stringify(encryptKeystore(testSecret(1), PASSWORD)));
});

function put(name: string, keystore: string, password = `${PASSWORD}\n`): void {
  writeFileSync(join(keystores, `${name}.json`), keystore);
  writeFileSync(join(passwords, `${name}.txt`), password);
}

const write = (name: string, value: unknown) => writeFileSync(join(keystores, name), JSON.stringify(value));

function files(): KeyFiles {
  const folders = { paths: [directory.path], keystores: { path: keystores, passwords: { folder: passwords } } };
  return new KeyFiles({ ...folders, rawLoadConcurrency: 4 }, { store, pool, log, clock: systemClock });
}

const warnings = () => log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields);

it('the folder of the deposit tools loads, at a start and at a reload', async () => {
  for (const named of Object.values(FOREIGN)) for (const [name, value] of Object.entries(named)) write(name, value);
  writeFileSync(join(directory.path, 'eth1.yaml'), 'type: file-raw\nkeyType: SECP256K1\nprivateKey: 0x11\n');
  const keyFiles = files();
  expect(await keyFiles.load()).toMatchObject({ loaded: 1, failures: [] });
  const counts = Object.fromEntries(Object.entries(FOREIGN).map(([kind, named]) => [kind, Object.keys(named).length]));
  expect(warnings()).toEqual([{ ...counts, secp256k1_keys: 1 }]);
  expect(await keyFiles.reload(async () => undefined)).toMatchObject({ kept: 1, removed: 0, failures: [] });
  expect(store.find(publicKeyOf(testSecret(1)))).toBeDefined();
});

describe('is a fault of a key', () => {
  const whole = encryptKeystore(testSecret(2), PASSWORD);
  it.each([
    ['a keystore that is cut', 'cut.json', JSON.stringify(whole).slice(0, 200)],
    ['an object of which nothing is known', 'other.json', '{}'],
    ['a keystore by the name of another file', 'deposit_data-1.json', JSON.stringify({ ...whole, version: 3 })],
    ['a keystore of Ethereum 1', 'UTC--1.json', JSON.stringify({ version: 3, Crypto: {} })],
    ['a text', 'text.json', '"text"'],
  ])('%s', async (_, name, text) => {
    writeFileSync(join(keystores, name), text);
    expect(await files().load()).toMatchObject({ loaded: 1, failures: [{ file: join(keystores, name) }] });
    expect(warnings()).toEqual([]);
  });

  it('what a descriptor names as a keystore', async () => {
    write('deposit_data-1.json', []);
    writeFileSync(join(directory.path, 'one.yaml'), keystoreText('keystores/deposit_data-1.json', 'passwords/x.txt'));
    expect(await files().load()).toMatchObject({
      loaded: 1,
      failures: [{ file: join(directory.path, 'one.yaml'), reason: expect.stringContaining('deposit_data-1.json') }],
    });
  });
});

it('a byte order mark before a keystore, and before a password, is none of it', async () => {
  put('windows', BOM + JSON.stringify(encryptKeystore(testSecret(2), PASSWORD)), `${BOM}${PASSWORD}\r\n`);
  put('inside', JSON.stringify(encryptKeystore(testSecret(3), `${BOM}${PASSWORD}`)), `${BOM}${PASSWORD}\n`);
  expect(await files().load()).toMatchObject({ loaded: 3, failures: [] });
});
