// A pool of one keystore worker for all tests of a file, keystores that it opens, and keystores that are wrong in one
// member. All keys are TEST keys.

import { afterAll } from 'vitest';
import type { Keystore } from '../../../signer/keys/keystores/cipher.ts';
import { parseKeystore } from '../../../signer/keys/keystores/keystore.ts';
import { KeystorePool } from '../../../signer/keys/keystores/pool.ts';
import { encryptKeystore, LIGHT_SCRYPT, testSecret } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';

const GIBIBYTE = 2 ** 30;
export const pool = new KeystorePool(
  { keystoreLoadConcurrency: 1, memoryLimitBytes: 4 * GIBIBYTE, cores: 1 },
  { log: recordingLog() },
);
afterAll(() => pool.close());

export function parsed(value: unknown): Keystore {
  const keystore = parseKeystore(value);
  if ('refused' in keystore) throw new Error(keystore.reason);
  return keystore;
}

export function decrypt(keystore: unknown, password: string) {
  return pool.decrypt(parsed(keystore), Buffer.from(password, 'utf8'));
}

export const hexOf = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;

type Members = Record<string, unknown>;

/** A good keystore with one member replaced, by path. */
export function withMember(
  path: string,
  value: unknown,
  good: unknown = encryptKeystore(testSecret(1), 'p', LIGHT_SCRYPT),
): unknown {
  const copy = structuredClone(good) as Members;
  const names = path.split('.');
  const last = names.pop() ?? '';
  let place = copy;
  for (const name of names) place = place[name] as Members;
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

export const pbkdf2 = encryptKeystore(testSecret(1), 'p');
