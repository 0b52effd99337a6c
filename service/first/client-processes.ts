// Whether a client still runs on this machine: a process whose command line is that of a client that signs, or that has
// a file of its record open. Of Linux alone. What this user may not see is not seen, and nothing is known of other
// machines: it finds a client that was forgotten, and proves nothing.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

export interface ClientProcess {
  readonly pid: number;
  readonly program: string;
}

/** @param files how the paths of its record begin @returns undefined where processes cannot be listed */
export function processesOf(commandLine: RegExp, files: string | undefined): readonly ClientProcess[] | undefined {
  const pids = attempt(() => readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name) && +name !== process.pid));
  return pids?.flatMap((pid) => {
    const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trimEnd()) ?? '';
    if (!commandLine.test(command) && !hasOpen(pid, files)) return [];
    return [{ pid: Number(pid), program: basename(command.split(' ')[0] ?? '') }];
  });
}

function hasOpen(pid: string, files: string | undefined): boolean {
  if (files === undefined) return false;
  const folder = `/proc/${pid}/fd`;
  const open = attempt(() => readdirSync(folder)) ?? [];
  return open.some((name) => attempt(() => readlinkSync(`${folder}/${name}`))?.startsWith(files));
}

/** A process that ended meanwhile, and one of another user, have none. */
function attempt<Result>(look: () => Result): Result | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
