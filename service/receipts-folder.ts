// Receipts in a folder of the host (specification/receipts.md#tiles), apart because only the program of a host has a
// disk. Whoever can write the folder can withhold, and forge nothing of another boot. A file is whole and on the disk
// before the log counts it; a head of an earlier start that cannot be read is an error, so that the log says a gap.

import fs from 'node:fs';
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readHead } from '../common/receipts/head.ts';
import { CHECKPOINT } from '../common/receipts/tiles.ts';
import { inParallel } from '../signer/parallel.ts';
import type { ReceiptFile, ReceiptStorage } from '../signer/receipts/storage.ts';

const BOOT = /^[0-9a-f]{32}$/;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MAX_OPEN_FILES = 8;
/** With callbacks: a handle of node:fs/promises for each file costs the main thread several times as much. */
const writeFile = promisify(fs.writeFile);
const renameFile = promisify(fs.rename);

export function receiptsFolder(folder: string): ReceiptStorage {
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
    async write(boot, files) {
      await inParallel(files, MAX_OPEN_FILES, (file) => writeNew(join(folder, boot), file));
      for (const { path } of files) await renameFile(join(folder, boot, `${path}.new`), join(folder, boot, path));
      const folders = new Set(files.flatMap(({ path }) => foldersOf(path)));
      await inParallel([...folders], MAX_OPEN_FILES, (path) => syncFolder(join(folder, boot, path)));
    },
    async remove(boot, paths) {
      await inParallel(paths, MAX_OPEN_FILES, (path) => rm(join(folder, boot, path), { force: true }));
    },
  };
}

async function writeNew(folder: string, { path, content }: ReceiptFile): Promise<void> {
  const target = join(folder, `${path}.new`);
  try {
    await writeFile(target, content, { mode: FILE_MODE, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await mkdir(dirname(target), { recursive: true, mode: FOLDER_MODE });
    await writeFile(target, content, { mode: FILE_MODE, flush: true });
  }
}

/** From the one that holds the file up to that of all boots: a folder that was made is in the one above it. */
function foldersOf(path: string): string[] {
  const folders = ['..'];
  for (let above = dirname(path); above !== '.'; above = dirname(above)) folders.push(above);
  return ['.', ...folders];
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

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
