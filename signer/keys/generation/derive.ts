// From a mnemonic to a validator key: BIP-39 seed, then EIP-2333 derivation along an EIP-2334 path.

import { SecretKey } from '@chainsafe/blst';
import { entropyToMnemonic } from '@scure/bip39';
import { wordlist as englishWords } from '@scure/bip39/wordlists/english.js';

/** EIP-2334: purpose 12381, coin type 3600 (Ethereum), account 0, withdrawal key 0, its signing key 0. */
export const SIGNING_KEY_PATH = 'm/12381/3600/0/0/0';

/** @param entropy 16 to 32 bytes: 32 bytes give 24 words */
export function mnemonicOfEntropy(entropy: Uint8Array): string {
  return entropyToMnemonic(entropy, englishWords);
}

/** 32 bytes, big endian; the caller wipes both. @throws RangeError for a seed of less than 32 bytes, or a bad path */
export function deriveSecretKey(seed: Uint8Array, path: string): Uint8Array {
  if (seed.length < 32) throw new RangeError('an EIP-2333 seed has at least 32 bytes');
  // blst wipes each SecretKey when it is collected.
  let key = SecretKey.deriveMasterEip2333(seed);
  for (const index of indicesOf(path)) key = key.deriveChildEip2333(index);
  return key.toBytes();
}

function indicesOf(path: string): number[] {
  const [root, ...nodes] = path.split('/');
  if (root !== 'm') throw new RangeError('an EIP-2334 path begins with m');
  return nodes.map((node) => {
    const index = Number(node);
    if (!/^\d{1,10}$/.test(node) || index >= 2 ** 32) throw new RangeError('an EIP-2334 path has indices below 2^32');
    return index;
  });
}
