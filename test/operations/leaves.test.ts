import { hasher as webAssembly } from '@chainsafe/persistent-merkle-tree/hasher/as-sha256';
import { hasher as native } from '@chainsafe/persistent-merkle-tree/hasher/hashtree';
import { describe, expect, it } from 'vitest';
import { agreesWithNode, useFastestHasher } from '../../signer/operations/leaves.ts';

describe('the hasher of the SSZ library', () => {
  it('is the native one where its binary loads, as it does here', async () => {
    expect(await useFastestHasher()).toBe('hashtree');
  });

  it('both candidates compute SHA-256', () => {
    expect(agreesWithNode(native)).toBe(true);
    expect(agreesWithNode(webAssembly)).toBe(true);
  });

  it('that computes one block of many wrongly is not believed', () => {
    for (const wrongBlock of [0, 15, 16, 23, 27, 29, 30]) {
      const flawed = {
        hashInto: (input: Uint8Array, output: Uint8Array) => {
          native.hashInto(input, output);
          output[wrongBlock * 32] = (output[wrongBlock * 32] ?? 0) ^ 1;
        },
      };
      expect(agreesWithNode(flawed)).toBe(false);
    }
  });
});
