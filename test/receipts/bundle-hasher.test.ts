// The thread that hashes for the log of receipts: its hashes are those of the tree, in the order of the calls, and a
// thread that ends costs no decision.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeBundle, encodeEntry } from '../../common/receipts/entries.ts';
import { leafHash, TreeEdge } from '../../common/receipts/tree.ts';
import { hashLeaves, rootOfBundle } from '../../signer/receipts/bundle-hash.ts';
import { bundleHasher } from '../../signer/receipts/bundle-hasher.ts';
import { recordingLog } from '../support/recording-log.ts';
import { testEntry } from './logs.ts';

const entriesFrom = (begin: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, index) => encodeEntry(testEntry(1, begin + index)));

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-hasher-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function workerThat(name: string, does: string): URL {
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, `import { parentPort } from 'node:worker_threads';\n${does}\n`);
  return pathToFileURL(path);
}

describe('the hashes of a bundle', () => {
  it.each([0, 1, 255, 256])('of %i entries are those of the tree', (count) => {
    const entries = entriesFrom(0, count);
    const edge = new TreeEdge();
    for (const entry of entries) edge.append(leafHash(entry));
    const bundle = encodeBundle(entries);
    expect(hashLeaves(bundle)).toEqual(Buffer.concat(entries.map(leafHash)));
    if (count === 256) expect(Buffer.from(rootOfBundle(bundle))).toEqual(edge.root());
  });

  it.each([
    ['an entry that ends behind it', Buffer.from([0, 3, 1, 1])],
    ['half a length', Buffer.from([0])],
    ['257 entries', Buffer.alloc(257 * 2)],
  ])('with %s are refused', (_name, bundle) => {
    expect(() => rootOfBundle(bundle)).toThrow(RangeError);
  });
});

describe('the thread', () => {
  const bundles = [256, 256, 256].map((count, index) => encodeBundle(entriesFrom(1000 * index, count)));

  it.each<[string, () => URL | undefined, RegExp[]]>([
    ['answers', () => undefined, []],
    ['ends at the first bundle', () => workerThat('ends', "parentPort.once('message', () => process.exit(3));"), []],
    ['fails', () => workerThat('fails', "parentPort.once('message', () => { throw new Error('lost'); });"), [/ended/]],
    ['cannot start', () => pathToFileURL(join(folder, 'nothing.mjs')), [/ended/]],
  ])('that %s leaves no bundle without its hashes, and keeps their order', async (_name, workerUrl, warnings) => {
    const log = recordingLog();
    const hasher = bundleHasher(log, workerUrl());
    const order: number[] = [];
    const hash = async (index: number): Promise<void> => {
      const bundle = bundles[index] ?? Buffer.alloc(0);
      expect(await hasher.hash(bundle)).toEqual(rootOfBundle(bundle));
      order.push(index);
    };
    await Promise.all([hash(0), hash(1), hash(2)]);
    await hash(1);
    expect(order).toEqual([0, 1, 2, 1]);
    await hasher.close();
    await hash(2);
    expect(log.lines.map(({ message }) => message)).toEqual(warnings.map((text) => expect.stringMatching(text)));
  });
});
