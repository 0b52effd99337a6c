// From keystores as a request brings them to secret keys. One that is bad does not stop the others.

import type { KeyShare } from '../../api/distributed.ts';
import { inParallel } from '../../parallel.ts';
import type { KeyStore } from '../store.ts';
import type { Keystore } from './cipher.ts';
import { parseKeystore, parseKeystoreJson } from './keystore.ts';
import type { KeystorePool, PoolAnswer } from './pool.ts';

export interface KeystoreItem {
  readonly keystore: unknown;
  /** UTF-8; wiped when it was used, and by the caller when it was not. */
  readonly password: Buffer;
}

export interface KeystoreProblem {
  readonly kind: 'problem';
  readonly publicKey: string | undefined;
  readonly message: string;
}

interface ParsedItem {
  readonly kind: 'parsed';
  readonly publicKey: string | undefined;
  readonly keystore: Keystore;
  readonly password: Buffer;
}

export interface OpenedKeystore {
  readonly kind: 'opened';
  /** The validator's. */
  readonly publicKey: string;
  readonly share: KeyShare | undefined;
  readonly secretKey: Uint8Array;
}

type Origin = 'request' | 'load';
type Outcome = OpenedKeystore | KeystoreProblem;

export function parseItem({ keystore, password }: KeystoreItem): ParsedItem | KeystoreProblem {
  const parsed = typeof keystore === 'string' ? parseKeystoreJson(keystore) : parseKeystore(keystore);
  if ('refused' in parsed) {
    return { kind: 'problem', publicKey: undefined, message: `not an EIP-2335 keystore: ${parsed.reason}` };
  }
  return { kind: 'parsed', publicKey: parsed.publicKey, keystore: parsed, password };
}

type KeystoreParts = Readonly<{ pool: KeystorePool; store: Pick<KeyStore, 'publicKeyOf'> }>;

/** @throws SignerError `overloaded`, `shutting_down`; the signal's reason. No secret is left unwiped then */
export async function openKeystores(
  items: readonly (ParsedItem | KeystoreProblem)[],
  parts: KeystoreParts,
  signal: AbortSignal,
  from: Origin = 'request',
): Promise<Outcome[]> {
  const opened: Outcome[] = [];
  try {
    await inParallel([...items.entries()], parts.pool.concurrency, async ([index, item]) => {
      signal.throwIfAborted();
      opened[index] = item.kind === 'problem' ? item : await openKeystore(item, parts, from);
    });
    return opened;
  } catch (error) {
    wipeKeystores(opened);
    throw error;
  }
}

export function wipeKeystores(opened: readonly (Outcome | undefined)[]): void {
  for (const item of opened) if (item?.kind === 'opened') item.secretKey.fill(0);
}

async function openKeystore(item: ParsedItem, { pool, store }: KeystoreParts, from: Origin): Promise<Outcome> {
  const problem = (message: string): KeystoreProblem => ({ kind: 'problem', publicKey: item.publicKey, message });
  const answer = await pool.decrypt(item.keystore, item.password, from);
  if ('refused' in answer) return problem(DECRYPTION_PROBLEMS[answer.refused]);
  const own = publicKeyOrWipe(store, answer.secretKey);
  const { share } = item.keystore;
  const named = share?.publicKey ?? item.publicKey;
  if (own !== undefined && (named === undefined || named === own)) {
    return { kind: 'opened', publicKey: item.publicKey ?? own, share, secretKey: answer.secretKey };
  }
  answer.secretKey.fill(0);
  const held = own === undefined ? 'no valid secret key' : 'the secret of another public key than it names';
  return problem(`the keystore holds ${held}`);
}

function publicKeyOrWipe(store: KeystoreParts['store'], secretKey: Uint8Array): string | undefined {
  try {
    return store.publicKeyOf(secretKey);
  } catch (error) {
    secretKey.fill(0);
    throw error;
  }
}

const DECRYPTION_PROBLEMS: Readonly<Record<Extract<PoolAnswer, { refused: string }>['refused'], string>> = {
  wrong_password: 'the password does not open the keystore',
  password_not_utf8: 'the password is not UTF-8',
  too_much_memory: 'the key derivation of the keystore takes more memory than this machine can give',
  decryption_failed: 'the keystore could not be decrypted on this machine; the log says why',
};
