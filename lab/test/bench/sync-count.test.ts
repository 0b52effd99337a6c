// How often a process makes data durable is counted at the calls themselves: an fsync, and a write on a descriptor that
// was opened with O_DSYNC. A plain write is neither.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { noStrace } from '../../../test/support/slow-disk.ts';
import { countSyncs } from '../../bench/peers/processes.ts';

const WRITER = `
import { constants, fsyncSync, openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
const [plain, synced] = [0, constants.O_DSYNC].map((flag, at) =>
  openSync(process.argv[1] + '/' + at, constants.O_CREAT | constants.O_WRONLY | flag));
const does = { plain: () => writeSync(plain, 'x'), synced: () => writeSync(synced, 'x'), fsync: () => fsyncSync(plain) };
process.stdout.write('ready\\n');
for await (const line of createInterface({ input: process.stdin })) { does[line](); process.stdout.write('done\\n'); }`;

const NO_STRACE = noStrace();
let folder: string;
let writer: ChildProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-syncs-'));
  writer = spawn(process.execPath, ['--input-type=module', '-e', WRITER, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(writer.stdout ?? writer, 'data');
});
afterAll(async () => {
  writer.stdin?.end();
  await once(writer, 'exit');
  rmSync(folder, { recursive: true, force: true });
});

async function does(what: string): Promise<void> {
  const done = once(writer.stdout ?? writer, 'data');
  writer.stdin?.write(`${what}\n`);
  await done;
}

it.skipIf(NO_STRACE)('counts what became durable, and nothing else', async () => {
  const counted = await countSyncs([writer.pid ?? 0], async () => {
    for (const what of ['plain', 'synced', 'fsync', 'synced', 'plain', 'synced']) await does(what);
  });
  expect(counted).toEqual({ syncCalls: 1, syncedWrites: 3 });
});

it.skipIf(NO_STRACE)('says that it could not look at a process that is gone', async () => {
  const gone = spawn('true');
  await once(gone, 'exit');
  expect(await countSyncs([gone.pid ?? 0], async () => undefined)).toBeUndefined();
});
