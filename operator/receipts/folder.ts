// Logs of receipts as a folder of boots (specification/receipts.md#tiles). It judges nothing: what cannot be read as a
// file is a failure of the command, and what is read goes to the verifier as it is. Heads are read one by one, entries
// tile by tile.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import { MAX_HEAD_BYTES, readHead } from '../../common/receipts/head.ts';
import { bootOf } from '../../common/receipts/identity.ts';
import { readIdentity } from '../../common/receipts/read-identity.ts';
import { decodeBundle, tilePath } from '../../common/receipts/tiles.ts';
import { HASH_BYTES, TILE_WIDTH } from '../../common/receipts/tree.ts';
import type { RemovedEntry, ShownBoot, ShownEntry } from '../../common/receipts/verify.ts';
import { localFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';

const BOOT = /^[0-9a-f]{32}$/;
const NUMBER = /^[0-9]{3}$/;
const WIDTH = /^[1-9][0-9]{0,2}$/;
/** A bundle of the longest entries has 82 KiB. */
export const MAX_FILE_BYTES: number = 128 * 1024;

/** @param kept files with heads, which are shown to the boots that they are of @throws CommandFailure */
export function readBoots(folder: string, kept: readonly string[]): ShownBoot[] {
  // A boot that ended, or a call of fetch, before it had a latest head: no later boot names it.
  const isLog = (name: string): boolean => BOOT.test(name) && existsSync(join(folder, name, 'checkpoint'));
  const boots = fileNames(folder).filter(isLog);
  if (boots.length === 0) throw localFailure(`${folder} holds no log of a boot`);
  const keptHeads = kept.map((path) => readLogText(path, MAX_HEAD_BYTES));
  const shown = boots.toSorted().map((name) => ({ name, boot: readBoot(join(folder, name)) }));
  const named = shown.map(({ name, boot }) => ({ boot, name: nameOf(boot) || name }));
  for (const [index, head] of keptHeads.entries()) {
    const name = readHead(head)?.boot;
    if (name === undefined) throw localFailure(`--kept ${kept[index]} is no head`);
    if (named.some((one) => one.name === name)) continue;
    throw localFailure(`--kept ${kept[index]} is of the boot ${name}, which ${folder} does not hold`);
  }
  return named.map(({ boot, name }) => {
    const ofThis = keptHeads.filter((head) => readHead(head)?.boot === name);
    const heads = function* () {
      yield* boot.heads;
      yield* ofThis;
    };
    return { ...boot, heads: iterable(heads) };
  });
}

function nameOf({ identity }: ShownBoot): string {
  const read = readIdentity(identity);
  return read === undefined ? '' : bootOf(read.publicKey);
}

function readBoot(folder: string): ShownBoot {
  const identity = readLogText(join(folder, 'identity')).replace(/\n$/, '');
  const hasEntries = widestBundle(folder, 0) !== undefined || existsSync(join(folder, tilePath(0, 0, TILE_WIDTH)));
  return {
    identity,
    heads: iterable(() => headsIn(join(folder, 'heads'))),
    entries: hasEntries ? iterable(() => entriesIn(folder)) : undefined,
  };
}

function* headsIn(folder: string): Generator<string, void, undefined> {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* headsIn(path);
    else if (entry.isFile() && NUMBER.test(entry.name)) yield readLogText(path);
  }
}

/** Of the full tiles, by their hashes where there are no entries, and of the widest one that is not full. */
function* entriesIn(folder: string): Generator<ShownEntry, void, undefined> {
  for (let index = 0; ; index++) {
    const bundle = widestBundle(folder, index);
    const hashes = join(folder, tilePath(0, index, TILE_WIDTH));
    const entries = bundle === undefined ? [] : partsIn(bundle, decodeBundle, 'bundle of entries');
    yield* entries;
    if (bundle?.endsWith(tilePath('entries', index, TILE_WIDTH)) === true) continue;
    if (!existsSync(hashes)) return;
    yield* partsIn(hashes, removedOf, 'tile of hashes').slice(entries.length);
  }
}

/** The bundle of this tile with the most entries. */
function widestBundle(folder: string, index: number): string | undefined {
  const full = join(folder, tilePath('entries', index, TILE_WIDTH));
  if (existsSync(full)) return full;
  const widths = existsSync(`${full}.p`) ? fileNames(`${full}.p`).filter((name) => WIDTH.test(name)) : [];
  return widths.length === 0 ? undefined : join(`${full}.p`, String(Math.max(...widths.map(Number))));
}

function partsIn<Part>(
  path: string,
  read: (bytes: Buffer) => readonly Part[] | undefined,
  form: string,
): readonly Part[] {
  const parts = read(readLogBytes(path));
  if (parts === undefined) throw localFailure(`${path} is no ${form}`);
  return parts;
}

/** Undefined for bytes that are no full tile of hashes. */
export function removedOf(tile: Buffer): RemovedEntry[] | undefined {
  if (tile.length !== TILE_WIDTH * HASH_BYTES) return undefined;
  return Array.from({ length: TILE_WIDTH }, (_, index) => ({
    hash: tile.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  }));
}

function readLogText(path: string, maxBytes?: number): string {
  return readLogBytes(path, maxBytes).toString('utf8');
}

/** @param place as it is called in a failure @throws CommandFailure */
export function readLogBytes(path: string, maxBytes: number = MAX_FILE_BYTES, place: string = path): Buffer {
  try {
    if (statSync(path).size <= maxBytes) return readFileSync(path);
  } catch (error) {
    throw fileFailure(place, 'read', shownErrorCode(error));
  }
  throw localFailure(`${place} is larger than ${maxBytes} bytes`);
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw fileFailure(folder, 'read', shownErrorCode(error));
  }
}

/** Read again each time that it is asked. */
function iterable<T>(items: () => Iterator<T>): Iterable<T> {
  return { [Symbol.iterator]: items };
}
