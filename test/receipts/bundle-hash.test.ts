// The hashes of a bundle of the log of receipts: the addon and what stands in for it give those of the tree, and refuse
// the same bytes.

import { describe, expect, it } from 'vitest';
import { MAX_ENTRY_BYTES } from '../../common/receipts/entry.ts';
import { encodeBundle } from '../../common/receipts/read-entry.ts';
import { leafHash, TreeEdge } from '../../common/receipts/tree.ts';
import { type Addon, loadAddon } from '../../signer/native/load.ts';
import { fastestBundleRoot, hashLeaves, rootInScript } from '../../signer/receipts/bundle-hash.ts';
import { addonForTests } from '../support/addon.ts';
import { encodeEntry } from './encode-entry.ts';
import { testEntry } from './logs.ts';

const entriesFrom = (begin: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, index) => encodeEntry(testEntry(1, begin + index)));

const entriesOf = (lengths: readonly number[]): Buffer[] => lengths.map((length, index) => Buffer.alloc(length, index));

function rootOf(entries: readonly Buffer[]): Buffer {
  const edge = new TreeEdge();
  for (const entry of entries) edge.append(leafHash(entry));
  return edge.root();
}

it.each([0, 1, 255, 256])('the leaves of %i entries are those of the tree', (count) => {
  const entries = entriesFrom(0, count);
  expect(hashLeaves(encodeBundle(entries))).toEqual(Buffer.concat(entries.map(leafHash)));
});

it.each([
  ['an entry that ends behind it', Buffer.from([0, 3, 1, 1])],
  ['half a length', Buffer.from([0])],
  ['257 entries', Buffer.alloc(257 * 2)],
])('a bundle with %s has no leaves', (_name, bundle) => {
  expect(() => hashLeaves(bundle)).toThrow(RangeError);
});

describe.each([
  ['the addon', addonForTests],
  ['the script', () => true],
])('the root of a full bundle by %s', (name, isHere) => {
  const root = name === 'the addon' ? fastestBundleRoot() : rootInScript;
  const full = encodeBundle(entriesFrom(0, 256));

  it.skipIf(!isHere())('is what the log takes', () => {
    expect(root === rootInScript).toBe(name === 'the script');
  });

  it.skipIf(!isHere()).each([
    ['of decisions', entriesFrom(7000, 256)],
    ['of empty entries', entriesOf(Array(256).fill(0))],
    ['of the longest entries', entriesOf(Array(256).fill(MAX_ENTRY_BYTES))],
    ['of entries of all lengths', entriesOf(Array.from({ length: 256 }, (_, index) => index + 60))],
  ])('%s is that of the tree', (_name, entries) => {
    expect(root(encodeBundle(entries))).toEqual(rootOf(entries));
  });

  it.skipIf(!isHere()).each([
    ['one byte', Buffer.alloc(1)],
    ['255 entries', encodeBundle(entriesFrom(0, 255))],
    ['257 entries', Buffer.concat([full, encodeBundle(entriesFrom(256, 1))])],
    ['half a length behind it', Buffer.concat([full, Buffer.alloc(1)])],
    ['a byte too few', full.subarray(0, -1)],
  ])('with %s is refused', (_name, bundle) => {
    expect(() => root(bundle)).toThrow(RangeError);
  });
});

it.each<[string, Parameters<typeof fastestBundleRoot>[0]]>([
  ['is not there', () => undefined],
  ['cannot be loaded', () => loadAddon(import.meta.filename)],
  ['is older than the function', () => ({}) as Addon],
  ['computes wrongly', () => ({ bundleRoot: (_, root) => void root.fill(7) })],
])('an addon that %s is not believed: the script hashes', (_name, load) => {
  expect(fastestBundleRoot(load)).toBe(rootInScript);
});
