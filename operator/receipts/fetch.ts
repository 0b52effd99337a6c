// The log of one boot from a signer into a folder (specification/receipts.md#tiles). What a head is, the verifier says
// (common/receipts/verify.ts), of each while it comes; the entries are held against each head before its file is
// written. It trusts neither the signer nor what an earlier call left in the folder, which it reads again. Memory holds
// one tile of each level, and the files that are on their way.

import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { MAX_HEAD_BYTES, type ReadHead } from '../../common/receipts/head.ts';
import { type BootIdentity, bootOf } from '../../common/receipts/identity.ts';
import { encodeBundle } from '../../common/receipts/read-entry.ts';
import { readIdentity } from '../../common/receipts/read-identity.ts';
import { decodeBundle, headPath, tilePath } from '../../common/receipts/tiles.ts';
import { leafHash, TILE_WIDTH, TreeEdge } from '../../common/receipts/tree.ts';
import { type Find, judgeNext, type ShownEntry, takeHead } from '../../common/receipts/verify.ts';
import type { Session } from '../client.ts';
import { CommandFailure } from '../exit.ts';
import { MAX_FILE_BYTES, readLogBytes, removedOf } from './folder.ts';
import type { TimeSpan } from './summary.ts';

const ROUTE = '/api/v1/receipts/tiles';
/** Files that are asked for before they are needed. */
const AHEAD = 4;
const ENTRIES = 'tile/entries/';
const HASHES = 'tile/0/';
const PARTIAL = /^(.*)[.]p[/](\d+)$/;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export type FetchedBoot = Awaited<ReturnType<BootFetch['run']>>;

/** @throws CommandFailure: EXIT.receiptsBroken when the signer shows another log than it signed, or kept before */
export async function fetchBoot(session: Session, boot: string, folder: string, span: TimeSpan): Promise<FetchedBoot> {
  return new BootFetch(session, boot, join(folder, boot)).run(span);
}

interface ShownFile {
  readonly path: string;
  readonly content: Buffer;
  /** From the signer, and not from the folder. */
  readonly isNew: boolean;
}

interface UncoveredBundle extends Pick<ShownFile, 'path' | 'isNew'> {
  /** The number of entries up to its last one. */
  readonly end: number;
}

class BootFetch {
  readonly #session: Session;
  readonly #boot: string;
  readonly #folder: string;
  readonly #edge = new TreeEdge();
  #files = 0;
  /** Bundles that no head covers yet: those that are new go when the next head does not. */
  #uncovered: UncoveredBundle[] = [];

  constructor(session: Session, boot: string, folder: string) {
    this.#session = session;
    this.#boot = boot;
    this.#folder = folder;
  }

  async run({ fromMs, toMs }: TimeSpan) {
    const identity = await this.#identity();
    const latest = await this.#behind(await this.#latest(identity), identity);
    let before: ReadHead | undefined;
    let entries: AsyncGenerator<ShownEntry> | undefined;
    const heads = this.#each(pathsOf(latest.statement.sequence + 1, headPath), MAX_HEAD_BYTES);
    for await (const { path, content, isNew } of heads) {
      const head = this.#follow(content, identity, before);
      if (before === undefined && head.statement.time < toMs && latest.statement.time >= fromMs) {
        entries = this.#entries(latest.size);
      }
      if (entries !== undefined) await this.#cover(head, entries);
      if (isNew) await this.#write(path, content);
      before = head;
    }
    if (before?.digest !== latest.digest)
      throw this.#broken('two_logs', 'its latest head is another one than its last');
    const { sequence } = latest.statement;
    await this.#write('checkpoint', readLogBytes(join(this.#folder, headPath(sequence))));
    // Without entries the boot has no decision in the time that was asked for; the files came in this call.
    const size = entries === undefined ? undefined : latest.size;
    return { boot: this.#boot, heads: sequence + 1, entries: size, files: this.#files };
  }

  async #identity(): Promise<BootIdentity> {
    const content = await this.#get('identity', MAX_FILE_BYTES);
    const identity = readIdentity(content.toString('utf8').replace(/\n$/, ''));
    if (identity === undefined) throw this.#broken('malformed_identity', 'its identity has another form');
    if (bootOf(identity.publicKey) !== this.#boot) throw this.#broken('other_boot', 'its identity is of another boot');
    const own = join(this.#folder, 'identity');
    if (existsSync(own) && !readLogBytes(own).equals(content)) {
      throw this.#broken('two_logs', 'its identity is another one than the folder has');
    }
    await this.#write('identity', content);
    return identity;
  }

  /** What the signer shows as its latest head, which is no older than what an earlier call saw. */
  async #latest(identity: BootIdentity): Promise<ReadHead> {
    const latest = this.#read(await this.#get('checkpoint', MAX_HEAD_BYTES), identity);
    if (!existsSync(join(this.#folder, 'checkpoint'))) return latest;
    const own = this.#read(readLogBytes(join(this.#folder, 'checkpoint')), identity);
    const isOlder = latest.statement.sequence < own.statement.sequence;
    if (isOlder) throw this.#broken('went_back', 'its latest head is older than the one in the folder');
    return latest;
  }

  /** A signer that was killed between two writes kept one head that its checkpoint does not show. */
  async #behind(latest: ReadHead, identity: BootIdentity): Promise<ReadHead> {
    const next = await this.#ask(headPath(latest.statement.sequence + 1), MAX_HEAD_BYTES);
    return next === undefined ? latest : this.#follow(next, identity, latest);
  }

  #follow(content: Buffer, identity: BootIdentity, before: ReadHead | undefined): ReadHead {
    const head = this.#read(content, identity);
    judgeNext(before, head, this.#find);
    return head;
  }

  #read(content: Buffer, identity: BootIdentity): ReadHead {
    const head = takeHead(content.toString('utf8'), identity, this.#find);
    if (head === undefined) throw new Error('the verifier took no head, and found nothing');
    return head;
  }

  /** Take as many entries as the head has. */
  async #cover(head: ReadHead, entries: AsyncGenerator<ShownEntry>): Promise<void> {
    while (this.#edge.size < head.size) {
      const next = await entries.next();
      if (next.done === true) throw this.#broken('missing_entries', `there are ${this.#edge.size} entries`);
      this.#edge.append(next.value instanceof Uint8Array ? leafHash(next.value) : next.value.hash);
    }
    if (!this.#edge.root().equals(head.root)) throw await this.#otherRoot(head);
    const covered = this.#uncovered.filter(({ end }) => end <= head.size);
    this.#uncovered = this.#uncovered.filter(({ end }) => end > head.size);
    for (const { path, isNew } of covered) if (isNew) await this.#removeNarrower(path);
  }

  /** What an earlier call verified stays: it may be the evidence of a second log. */
  async #otherRoot({ statement }: ReadHead): Promise<CommandFailure> {
    const fresh = this.#uncovered.filter(({ isNew }) => isNew).map(({ path }) => path);
    for (const path of fresh) await rm(join(this.#folder, path), { force: true });
    const own = this.#uncovered.find(({ isNew }) => !isNew)?.path;
    return this.#broken(
      'other_root',
      `the entries are not those of head ${statement.sequence}`,
      own === undefined ? undefined : `some were here already: if the folder is damaged, remove ${own} and fetch again`,
    );
  }

  /** From the folder where it has them, else from the signer, which shows the hashes of removed entries. */
  async *#entries(size: number): AsyncGenerator<ShownEntry> {
    let end = 0;
    const widthOf = (index: number): number => Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const paths = pathsOf(Math.ceil(size / TILE_WIDTH), (index) => tilePath('entries', index, widthOf(index)));
    for await (const { path, content, isNew } of this.#each(paths, MAX_FILE_BYTES)) {
      const entries = path.startsWith(HASHES) ? removedOf(content) : decodeBundle(content);
      if (entries?.length !== Math.min(TILE_WIDTH, size - end))
        throw this.#broken('missing_entries', `${path} has another form`);
      end += entries.length;
      this.#uncovered.push({ path, isNew, end });
      if (isNew) await this.#write(path, content);
      yield* entries;
    }
  }

  /** Files in their order, some of them asked for ahead. */
  async *#each(paths: Iterator<string>, maxBytes: number): AsyncGenerator<ShownFile> {
    const asked: Promise<ShownFile>[] = [];
    const ask = (): void => {
      const next = paths.next();
      if (next.done === true) return;
      const file = this.#file(next.value, maxBytes);
      file.catch(() => undefined); // the reader of the list gets it
      asked.push(file);
    };
    for (let ahead = 0; ahead < AHEAD; ahead++) ask();
    for (let file = asked.shift(); file !== undefined; file = asked.shift()) {
      ask();
      yield await file;
    }
  }

  async #file(path: string, maxBytes: number): Promise<ShownFile> {
    const own = join(this.#folder, path);
    if (existsSync(own)) return { path, content: readLogBytes(own, maxBytes), isNew: false };
    const content = (await this.#ask(path, maxBytes)) ?? (await this.#cut(path, maxBytes));
    if (content === undefined && path.startsWith(ENTRIES) && !PARTIAL.test(path)) {
      return await this.#file(path.replace(ENTRIES, HASHES), maxBytes);
    }
    if (content === undefined) throw this.#broken(faultOf(path), `the signer does not show ${path}`);
    return { path, content, isNew: true };
  }

  /** Of a tile that has become full since the head was made (C2SP tlog-tiles, partial tiles). */
  async #cut(path: string, maxBytes: number): Promise<Buffer | undefined> {
    const [, full, width] = PARTIAL.exec(path) ?? [];
    if (full === undefined) return undefined;
    const entries = decodeBundle((await this.#ask(full, maxBytes)) ?? Buffer.alloc(0))?.slice(0, Number(width)) ?? [];
    return encodeBundle(entries);
  }

  async #get(path: string, maxBytes: number): Promise<Buffer> {
    const content = await this.#ask(path, maxBytes);
    if (content === undefined) throw this.#broken(faultOf(path), `the signer does not show its ${path}`);
    return content;
  }

  async #ask(path: string, maxBytes: number): Promise<Buffer | undefined> {
    const content = await this.#session.file(`${ROUTE}/${this.#boot}/${path}`, maxBytes);
    if (content !== undefined) this.#files += 1;
    return content;
  }

  /** Other widths of this tile. */
  async #removeNarrower(path: string): Promise<void> {
    const [, full, width] = PARTIAL.exec(path) ?? [];
    const partial = join(this.#folder, `${full ?? path}.p`);
    for (const name of existsSync(partial) ? await readdir(partial) : []) {
      if (name !== width) await rm(join(partial, name), { force: true });
    }
    if (width === undefined) await rm(partial, { recursive: true, force: true });
  }

  async #write(path: string, content: Buffer): Promise<void> {
    await writeDurably(join(this.#folder, path), content);
  }

  readonly #find: Find = (fault, detail) => {
    throw this.#broken(fault, detail);
  };

  #broken(fault: string, detail: string, advice?: string): CommandFailure {
    return new CommandFailure(EXIT.receiptsBroken, `boot ${this.#boot}: ${fault}: ${detail}`, advice);
  }
}

function* pathsOf(count: number, path: (index: number) => string): Generator<string, void, undefined> {
  for (let index = 0; index < count; index++) yield path(index);
}

/** Names what a signer withholds. */
function faultOf(path: string): string {
  if (path === 'identity') return 'malformed_identity';
  return path.startsWith('tile/') ? 'missing_entries' : 'missing_head';
}

async function writeDurably(path: string, content: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  const file = await open(`${path}.new`, 'w', FILE_MODE);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
