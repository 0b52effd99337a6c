// EIP-2333 and BIP-39, on the standard's own vectors.

import { readFileSync } from 'node:fs';
import { mnemonicToSeedSync } from '@scure/bip39';
import { describe, expect, it } from 'vitest';
import { deriveSecretKey, mnemonicOfEntropy, SIGNING_KEY_PATH } from '../../../signer/keys/generation/generate.ts';
import { vectorJson, vectorPath } from '../../support/vectors.ts';

interface TreeCase {
  readonly seed: string;
  readonly master_SK: bigint;
  readonly child_index: bigint;
  readonly child_SK: bigint;
}

/** The vectors have 256-bit integers as JSON numbers. */
function bigJson<T>(path: string): T | undefined {
  const file = vectorPath(path);
  if (file === undefined) return undefined;
  const text = readFileSync(file, 'utf8').replace(/(:\s*)(\d+)/g, '$1"#$2"');
  return JSON.parse(text, (_key, value) =>
    typeof value === 'string' && value.startsWith('#') ? BigInt(value.slice(1)) : value,
  );
}

const tree = bigJson<{ kdf_tests: TreeCase[] }>('eip2333/tree_kdf.json');
const intermediate = bigJson<TreeCase & { mnemonic: string; password: string }>('eip2333/tree_kdf_intermediate.json');
const mnemonics = vectorJson<Record<string, [string, string, string][]>>('eip2333/mnemonic.json');

function toInteger(secretKey: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(secretKey).toString('hex')}`);
}

describe.skipIf(tree === undefined)('EIP-2333', () => {
  it('has its four test cases', () => {
    expect(tree?.kdf_tests).toHaveLength(4);
  });

  it.each(tree?.kdf_tests ?? [])('derives master and child of seed $seed', (vector) => {
    const seed = Buffer.from(vector.seed, 'hex');
    expect(toInteger(deriveSecretKey(seed, 'm'))).toBe(vector.master_SK);
    expect(toInteger(deriveSecretKey(seed, `m/${vector.child_index}`))).toBe(vector.child_SK);
  });

  it('goes from mnemonic and passphrase to the child key', () => {
    if (intermediate === undefined) throw new Error('the intermediate vector is missing');
    const seed = mnemonicToSeedSync(intermediate.mnemonic, intermediate.password);
    expect(Buffer.from(seed).toString('hex')).toBe(intermediate.seed);
    expect(toInteger(deriveSecretKey(seed, `m/${intermediate.child_index}`))).toBe(intermediate.child_SK);
  });

  it('derives step by step what it derives in one go, one key a path', () => {
    const seed = Buffer.alloc(64, 7);
    const path = (account: number) => deriveSecretKey(seed, `m/12381/3600/${account}/0/0`);
    expect(path(0)).toEqual(deriveSecretKey(seed, SIGNING_KEY_PATH));
    expect(path(1)).not.toEqual(path(0));
  });
});

describe.skipIf(mnemonics === undefined)('BIP-39', () => {
  it.each(Object.keys(mnemonics ?? {}))('gives the seeds of the vectors in %s', (language) => {
    const vectors = mnemonics?.[language] ?? [];
    expect(vectors.length).toBeGreaterThanOrEqual(20);
    for (const [, mnemonic, seed] of vectors) {
      expect(Buffer.from(mnemonicToSeedSync(mnemonic, 'TREZOR')).toString('hex')).toBe(seed);
    }
  });

  it('writes the English mnemonics of the vectors', () => {
    for (const [entropy, mnemonic] of mnemonics?.['english'] ?? []) {
      expect(mnemonicOfEntropy(Buffer.from(entropy, 'hex'))).toBe(mnemonic);
    }
  });
});

describe('what derivation refuses', () => {
  const seed = Buffer.alloc(32, 1);

  it('refuses a seed of less than 32 bytes', () => {
    expect(() => deriveSecretKey(Buffer.alloc(31, 1), 'm')).toThrow(RangeError);
  });

  it.each(['', '12381/3600', 'm/', "m/0'", 'm/-1', 'm/4294967296', 'm/1.5', 'm/0x1', 'm/ 1'])(
    'refuses the path "%s"',
    (path) => {
      expect(() => deriveSecretKey(seed, path)).toThrow(RangeError);
    },
  );

  it('takes the largest index', () => {
    expect(deriveSecretKey(seed, 'm/4294967295')).toHaveLength(32);
  });
});
