// Whether a client still runs on this machine: a process whose command line is that of a client that signs, or that has
// a file of its record or keys open. What this user may not see is not seen, and nothing is known of other machines:
// it finds a client that was forgotten, and proves nothing.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

export interface ClientProcess {
  readonly pid: number;
  readonly program: string;
}

/** @param open the beginnings of paths of its files @returns undefined where the processes cannot be listed */
export function processesOf(commandLine: RegExp, open: readonly string[]): readonly ClientProcess[] | undefined {
  const all = process.platform === 'linux' ? ofLinux() : ofOthers();
  return all
    ?.filter(({ pid, command }) => pid !== process.pid && (commandLine.test(command) || holds(pid, open)))
    .map(({ pid, command }) => ({ pid, program: basename(command.split(' ')[0] ?? '') }));
}

interface Listed {
  readonly pid: number;
  readonly command: string;
}

function ofLinux(): readonly Listed[] | undefined {
  const pids = attempt(() => readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)));
  return pids?.flatMap((pid) => {
    const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    return command === undefined ? [] : [{ pid: Number(pid), command: command.replaceAll('\0', ' ').trimEnd() }];
  });
}

function ofOthers(): readonly Listed[] | undefined {
  const { status, stdout } = spawnSync('ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' });
  if (status !== 0) return undefined;
  return stdout.split('\n').flatMap((line) => {
    const [, pid, command = ''] = /^ *([0-9]+) (.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), command }];
  });
}

function holds(pid: number, open: readonly string[]): boolean {
  const folder = `/proc/${pid}/fd`;
  const files = attempt(() => readdirSync(folder)) ?? [];
  return files.some((name) => {
    const target = attempt(() => readlinkSync(`${folder}/${name}`)) ?? '';
    return open.some((beginning) => target.startsWith(beginning));
  });
}

/** A process that ended meanwhile, and one of another user, have none. */
function attempt<Result>(look: () => Result): Result | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
