// The validator keys of the model: real ones, in keystores that cost nothing to open, and a vault that knows their
// public keys and signs nothing. And where each key is: what an operator knows who moves keys by the book.

import { decodeHex } from '../../../common/formats/hex.ts';
import { KeystorePool } from '../../../signer/keys/keystores/pool.ts';
import type { KeyHandle, SecretKeyVault } from '../../../signer/keys/vault.ts';
import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../keys.ts';
import { quietLog } from '../slashing.ts';

export const KEYSTORE_PASSWORD = 'TEST password';

export interface FleetKey {
  readonly publicKey: string;
  readonly secret: Uint8Array;
  readonly keystore: object;
  /** Where it signs, or leaves from: undefined while it is nowhere. */
  site: string | undefined;
  /** Where it goes, once that was begun; what was begun is finished there. */
  next: string | undefined;
  /** What the place it left answered. */
  file: string | undefined;
  /** Files of earlier moves. */
  readonly oldFiles: string[];
  /** Somebody is at it: nobody else changes where it is meanwhile. */
  isBusy: boolean;
  /** Released, with the store over which. */
  readonly released: { readonly message: SlashableMessage; readonly store: string; readonly note: string }[];
  /** Since which step it is gone from where. */
  readonly leftAt: Map<string, number>;
}

export interface FleetKeys {
  readonly pool: KeystorePool;
  readonly vault: SecretKeyVault;
  make(count: number): FleetKey[];
  close(): Promise<void>;
}

const PUBLIC_KEYS = new Map<string, Uint8Array>();

export function fleetKeys(): FleetKeys {
  const pool = new KeystorePool({ keystoreLoadConcurrency: 1, memoryLimitBytes: 2 ** 31, cores: 1 }, { log: quietLog });
  let handles = 0;
  const vault: SecretKeyVault = {
    addKey(secretKey) {
      const name = Buffer.from(secretKey).toString('hex');
      const publicKey = PUBLIC_KEYS.get(name) ?? bytesOf(publicKeyOf(secretKey));
      PUBLIC_KEYS.set(name, publicKey);
      handles += 1;
      return { handle: handles as KeyHandle, publicKey };
    },
    addKeys: async (secretKeys) =>
      Array.from({ length: secretKeys.length / 32 }, (_, at) =>
        vault.addKey(secretKeys.subarray(32 * at, 32 * at + 32)),
      ),
    removeKey() {},
    wipe() {},
  };
  return {
    pool,
    vault,
    make: (count) => Array.from({ length: count }, (_, number) => makeKey(number)),
    close: () => pool.close(),
  };
}

function makeKey(number: number): FleetKey {
  const secret = testSecret(number);
  return {
    publicKey: publicKeyOf(secret),
    secret,
    keystore: encryptKeystore(secret, KEYSTORE_PASSWORD),
    site: undefined,
    next: undefined,
    file: undefined,
    oldFiles: [],
    isBusy: false,
    released: [],
    leftAt: new Map(),
  };
}

function bytesOf(publicKey: string): Uint8Array {
  const bytes = decodeHex(publicKey, 48);
  if (bytes === undefined) throw new Error('not a public key');
  return bytes;
}
