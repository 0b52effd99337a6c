// Receipts in a folder of the host (specification/receipts.md#tiles), in a file of its own because only the program of
// a host has a disk. A person who can write the folder can withhold receipts, but not forge those of another boot. A
// file is whole and on the disk before the log counts it; a head of an earlier start that cannot be read is an error,
// so that the log says a gap.

import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { readHead } from '../common/receipts/head.ts';
import { CHECKPOINT } from '../common/receipts/tiles.ts';
import { inParallel } from '../signer/parallel.ts';
import type { ReceiptFile, ReceiptStorage } from '../signer/receipts/storage.ts';
import { FOLDER_MODE, type WriteReply, type WriteRequest } from './receipts-worker.ts';

const BOOT = /^[0-9a-f]{32}$/;
const MAX_OPEN_FILES = 8;
const WRITER = new URL('./receipts-worker.ts', import.meta.url);

/** @param writerUrl tests put a worker here that fails */
export function receiptsFolder(folder: string, writerUrl: URL = WRITER): ReceiptStorage {
  const writer = new Writer(writerUrl);
  return {
    async boots() {
      await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      const names = (await readdir(folder)).filter((name) => BOOT.test(name));
      const times = new Map<string, number>();
      await inParallel(names, MAX_OPEN_FILES, async (name) => {
        const timeMs = await timeOfLatestHead(join(folder, name, CHECKPOINT));
        if (timeMs !== undefined) times.set(name, timeMs);
      });
      return [...times].sort(([, one], [, other]) => other - one).map(([name]) => name);
    },
    read: (boot, path) => readIfThere(join(folder, boot, path)),
    write: (boot, files) => writer.write(join(folder, boot), files),
    async remove(boot, paths) {
      await inParallel(paths, MAX_OPEN_FILES, (path) => rm(join(folder, boot, path), { force: true }));
    },
  };
}

/** One thread, begun by the first write, and again by the next one after its end. */
class Writer {
  readonly #url: URL;
  readonly #waiting = new Map<number, PromiseWithResolvers<void>>();
  /** Of the last write, if it is large enough for the next: fresh memory would cost more than the copy. */
  #memory = new SharedArrayBuffer(0);
  #thread: Worker | undefined;
  #next = 0;

  constructor(url: URL) {
    this.#url = url;
  }

  async write(folder: string, files: readonly ReceiptFile[]): Promise<void> {
    const id = this.#next++;
    const done = Promise.withResolvers<void>();
    const memory = this.#takeMemory(files.reduce((sum, { content }) => sum + content.length, 0));
    this.#thread ??= this.#start();
    this.#waiting.set(id, done);
    this.#thread.ref();
    this.#thread.postMessage({ id, folder, files: copiesIn(memory, files) } satisfies WriteRequest);
    await done.promise;
    this.#memory = memory;
  }

  #takeMemory(bytes: number): SharedArrayBuffer {
    const last = this.#memory;
    this.#memory = new SharedArrayBuffer(0);
    return last.byteLength < bytes ? new SharedArrayBuffer(bytes) : last;
  }

  #start(): Worker {
    // Neither the environment, which may hold tokens, nor the flags of the process go to the thread.
    const started = new Worker(this.#url, { env: {}, execArgv: [], name: 'receipts' });
    let cause: unknown;
    started.on('message', ({ id, error }: WriteReply) => {
      if (error === undefined) this.#waiting.get(id)?.resolve();
      else this.#waiting.get(id)?.reject(Object.assign(new Error(error.message), { code: error.code }));
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) started.unref();
    });
    started.on('error', (error) => {
      cause = error;
    });
    started.on('exit', () => {
      this.#thread = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error('the thread that writes ended', { cause }));
      this.#waiting.clear();
    });
    return started;
  }
}

function copiesIn(memory: SharedArrayBuffer, files: readonly ReceiptFile[]): WriteRequest['files'] {
  let end = 0;
  return files.map(({ path, content }) => {
    const copy = new Uint8Array(memory, end, content.length);
    copy.set(content);
    end += content.length;
    return { path, content: copy };
  });
}

async function timeOfLatestHead(path: string): Promise<number | undefined> {
  const note = await readIfThere(path);
  if (note === undefined) return undefined;
  const head = readHead(note.toString('utf8'));
  if (head === undefined) throw new Error(`${path} is no head of a log of receipts`);
  return head.statement.time;
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
