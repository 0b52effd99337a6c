// Folders as validator clients and Web3Signer leave them, with keystores of test keys: what `strongroom migrate` finds.
// Each key has voted from epoch 20 to 21 and proposed at slot 2000 (interchange.ts).

import { mkdirSync, mkdtempSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import type { MigratedClient } from '../../service/first/client-folders.ts';
import { interchangeOf } from './interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from './keys.ts';
import { MAINNET_ROOT } from './messages.ts';

export interface MadeFolder {
  /** The working folder, which has the client's folder and its export. */
  readonly cwd: string;
  /** What follows `strongroom migrate`; without --stopped. */
  readonly args: readonly string[];
  readonly publicKeys: readonly string[];
  /** A file that the client writes when it signs. */
  readonly written: string;
}

/** Long before: the client has been quiet since. */
export const QUIET = new Date('2026-01-01T00:00:00Z');

type Put = (path: string, content: string | object) => void;
interface Key {
  readonly publicKey: string;
  readonly keystore: object;
  readonly secret: string;
}

const LAYOUTS: Readonly<Record<MigratedClient, (put: Put, keys: readonly Key[]) => readonly string[]>> = {
  lighthouse(put, keys) {
    const list = keys.map(({ publicKey }) => ({
      enabled: true,
      voting_public_key: publicKey,
      description: '',
      suggested_fee_recipient: '0x00000000219ab540356cbb839cbe05303d7705fa',
      type: 'local_keystore',
      voting_keystore_path: `/root/.lighthouse/mainnet/validators/${publicKey}/voting-keystore.json`,
    }));
    const disabled = { ...list[0], enabled: false, voting_public_key: publicKeyOf(testSecret(99)) };
    put('client/validators/validator_definitions.yml', `---\n${stringify([...list, disabled])}`);
    for (const { publicKey, keystore } of keys) {
      put(`client/validators/${publicKey}/voting-keystore.json`, keystore);
      put(`client/secrets/${publicKey}`, `password of ${publicKey}`);
    }
    put('client/validators/slashing_protection.sqlite', 'a database');
    return ['--record', 'slashing_protection.json'];
  },
  teku(put, [first, ...others]) {
    for (const { publicKey, keystore } of first === undefined ? [] : [first]) {
      put(`client/validator/key-manager/local/${publicKey}.json`, keystore);
      put(`client/validator/key-manager/local-passwords/${publicKey}.txt`, `password of ${publicKey}`);
    }
    for (const [at, { publicKey, keystore }] of others.entries()) {
      put(`keys/keystore-${at}.json`, keystore);
      put(`keys/keystore-${at}.txt`, `password of ${publicKey}\n`);
    }
    put('keys/deposit_data-1700000000.json', [{ pubkey: 'aa', deposit_data_root: 'bb' }]);
    for (const { publicKey } of [...(first === undefined ? [] : [first]), ...others])
      put(
        `client/validator/slashprotection/${publicKey.slice(2)}.yml`,
        `---\ngenesisValidatorsRoot: "${MAINNET_ROOT}"\nlastSignedBlockSlot: 2000\n` +
          'lastSignedAttestationSourceEpoch: 20\nlastSignedAttestationTargetEpoch: 21\n',
      );
    return ['--keys', 'keys'];
  },
  prysm(put, keys) {
    put('client/validator.db', 'a database');
    for (const [at, { publicKey, secret }] of keys.entries())
      put(
        `backup/keystore-${at}.json`,
        encryptKeystore(Buffer.from(secret, 'hex'), 'open sesame', undefined, publicKey),
      );
    put('backup/deposit_data-1700000000.json', [{ pubkey: 'aa', deposit_data_root: 'bb' }]);
    put('password.txt', 'open sesame\n');
    return ['--keys', 'backup', '--passwords', 'password.txt', '--record', 'slashing_protection.json'];
  },
  nimbus(put, keys) {
    for (const { publicKey, keystore } of keys) {
      put(`client/validators/${publicKey}/keystore.json`, keystore);
      put(`client/secrets/${publicKey}`, `password of ${publicKey}`);
    }
    put(`client/validators/${publicKeyOf(testSecret(98))}/remote_keystore.json`, { type: 'web3signer' });
    put('client/validators/slashing_protection.sqlite3', 'a database');
    return ['--record', 'slashing_protection.json'];
  },
  lodestar(put, keys) {
    for (const { publicKey, keystore } of keys) {
      put(`client/keystores/${publicKey}/voting-keystore.json`, keystore);
      put(`client/secrets/${publicKey}`, `password of ${publicKey}`);
    }
    put('client/validator-db/000003.log', 'a database');
    return ['--record', 'slashing_protection.json'];
  },
  web3signer(put, [first, ...others]) {
    if (first !== undefined)
      put('client/raw.yaml', { type: 'file-raw', keyType: 'BLS', privateKey: `0x${first.secret}` });
    for (const [at, { publicKey, keystore }] of others.entries()) {
      put(`client/${at}.json`, keystore);
      put(`client/${at}.password`, `password of ${publicKey}`);
      const files = { keystoreFile: `${at}.json`, keystorePasswordFile: `${at}.password` };
      put(`client/${at}.yaml`, { type: 'file-keystore', keyType: 'BLS', ...files });
    }
    put('client/vault.yaml', { type: 'hashicorp', keyType: 'BLS' });
    return ['--record', 'slashing_protection.json'];
  },
};

const WRITTEN: Readonly<Record<MigratedClient, string>> = {
  lighthouse: 'client/validators/slashing_protection.sqlite',
  teku: `client/validator/slashprotection/${publicKeyOf(testSecret(1)).slice(2)}.yml`,
  prysm: 'client/validator.db',
  nimbus: 'client/validators/slashing_protection.sqlite3',
  lodestar: 'client/validator-db/000003.log',
  web3signer: 'none',
};

export function makeClientFolder(client: MigratedClient, count = 2): MadeFolder {
  const cwd = mkdtempSync(join(tmpdir(), `strongroom-migrate-${client}-`));
  const put: Put = (path, content) => {
    const file = join(cwd, path);
    mkdirSync(dirname(file), { recursive: true });
    const isYaml = path.endsWith('.yaml');
    const text = typeof content === 'string' ? content : isYaml ? stringify(content) : JSON.stringify(content);
    writeFileSync(file, text, { mode: 0o600 });
    utimesSync(file, QUIET, QUIET);
  };
  const keys = Array.from({ length: count }, (_, index): Key => {
    const secret = testSecret(index + 1);
    const publicKey = publicKeyOf(secret);
    const keystore = encryptKeystore(secret, `password of ${publicKey}`);
    return { publicKey, keystore, secret: Buffer.from(secret).toString('hex') };
  });
  const publicKeys = keys.map(({ publicKey }) => publicKey);
  put('slashing_protection.json', interchangeOf(publicKeys));
  const args = ['--from', client, 'client', ...LAYOUTS[client](put, keys)];
  return { cwd, args, publicKeys, written: join(cwd, WRITTEN[client]) };
}
