// Inside a guest: checks that run in order and leave a line each on the console (results.ts reads them). A check that
// fails does not end the others. After each one the process's sockets are counted: whatever a check opened has to be
// closed again.

import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const CHECK_LIMIT_MS = 120_000;
const CLOSING_PAUSE_MS = 20;
const MAX_CLOSING_PAUSES = 1500;

export interface Checks {
  check(name: string, run: () => Promise<void> | void): Promise<void>;
  readonly failed: number;
}

export function createChecks(): Checks {
  let failed = 0;
  return {
    get failed() {
      return failed;
    },
    async check(name, run) {
      const startedAt = performance.now();
      const before = openSockets();
      try {
        await inTime(run());
        await socketsAgain(before);
        process.stdout.write(`ok - ${name} (${Math.round(performance.now() - startedAt)} ms)\n`);
      } catch (error) {
        failed += 1;
        const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
        process.stdout.write(`not ok - ${name}: ${reason.replaceAll('\n', ' | ')}\n`);
      }
    },
  };
}

/** So that a check that waits for what does not come is named. */
async function inTime(check: Promise<void> | void): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done in ${CHECK_LIMIT_MS / 1000} s`)), CHECK_LIMIT_MS);
  await Promise.race([check, promise]).finally(() => clearTimeout(timer));
}

export function openSockets(): number {
  return readdirSync('/proc/self/fd').filter(isSocket).length;
}

/** A socket is closed when both ends are through with it: soon, not at once. */
async function socketsAgain(before: number): Promise<void> {
  for (let attempt = 0; openSockets() > before; attempt++) {
    if (attempt === MAX_CLOSING_PAUSES) throw new Error(`it leaves ${openSockets() - before} sockets open`);
    await pause(CLOSING_PAUSE_MS);
  }
}

function isSocket(descriptor: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('socket:');
  } catch {
    return false; // the folder's own descriptor
  }
}
