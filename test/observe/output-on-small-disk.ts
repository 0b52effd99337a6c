// A log on a disk that is full after 512 bytes (the soft limit of file sizes), and then has room again.

import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { openOutput } from '../../common/observe/output.ts';

process.on('SIGXFSZ', () => undefined);
const output = openOutput(process.argv[2] ?? '', {
  maxWaitingBytes: 1024 * 1024,
  collected: { bytes: 1024 * 1024, milliseconds: 60_000 },
});
for (let line = 0; line < 20; line++) output.write(`${'a'.repeat(99)}\n`);
if (await output.confirmed()) throw new Error('nothing was lost');
execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:']);
while (output.isLosing) await pause(5);
output.write('after\n');
await output.end(5000);
