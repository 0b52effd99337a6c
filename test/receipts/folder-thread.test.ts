// The thread that writes a log of receipts into its folder: what it could not write rejects with the reason, and one
// that ends takes nothing with it but the writes under way.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { headPath } from '../../common/receipts/tiles.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';

const BOOT = 'ab'.repeat(16);
const file = (number: number) => ({ path: headPath(number), content: Buffer.alloc(1000, number) });

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-receipts-thread-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

it('a folder that cannot be made says why, and the next write is tried again', async () => {
  writeFileSync(join(folder, 'blocked'), '');
  const storage = receiptsFolder(join(folder, 'blocked'));
  await expect(storage.write(BOOT, [file(1)])).rejects.toMatchObject({ code: 'ENOTDIR' });
  rmSync(join(folder, 'blocked'));
  await storage.write(BOOT, [file(1)]);
  expect(await storage.read(BOOT, headPath(1))).toEqual(file(1).content);
});

it('a thread that ends in the middle of two writes rejects both, and the next write has a new one', async () => {
  const writer = new URL('../../service/receipts-worker.ts', import.meta.url);
  const mark = join(folder, 'ended-once');
  const worker = join(folder, 'ends-once.mjs');
  writeFileSync(
    worker,
    `import { existsSync, writeFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
if (existsSync(${JSON.stringify(mark)})) await import(${JSON.stringify(writer.href)});
else parentPort.once('message', () => { writeFileSync(${JSON.stringify(mark)}, ''); process.exit(3); });
`,
  );
  const storage = receiptsFolder(join(folder, 'ends'), pathToFileURL(worker));
  const both = await Promise.allSettled([storage.write(BOOT, [file(1)]), storage.write(BOOT, [file(2)])]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await storage.write(BOOT, [file(1), file(2)]);
  expect(await storage.read(BOOT, headPath(2))).toEqual(file(2).content);
});

it('writes at once and one after another, large and small, are each whole', async () => {
  const storage = receiptsFolder(join(folder, 'many'));
  const large = (number: number) => ({ path: headPath(number), content: Buffer.alloc(90_000 * number, number) });
  await Promise.all([1, 2, 3].map((number) => storage.write(BOOT, [large(number), file(10 + number)])));
  await storage.write(BOOT, [file(20)]);
  await storage.write(BOOT, [large(4)]);
  for (const { path, content } of [...[1, 2, 3, 4].map(large), ...[11, 12, 13, 20].map(file)]) {
    expect(await storage.read(BOOT, path)).toEqual(content);
  }
});
