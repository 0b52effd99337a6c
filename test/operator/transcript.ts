// Transcripts: a golden file is a session as a person would see it. `$ ` starts a command, run by sh with the real
// program on its path; what follows is its stdout, then its stderr with `! ` before each line, then its exit code. A
// file is compared with what its commands do now.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { someOf } from '../support/scale.ts';

const BIN = join(import.meta.dirname, '../../bin');
const GOLDEN = join(import.meta.dirname, 'golden');
/** One command of the program, without another that makes files for it or looks at those that it made. */
const STANDS_ALONE = /^\$ (?:[A-Z_]+=\S* )*strongroom [^;|<>&\n]*\n/;

export interface Session {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

export function goldenPath(name: string): string {
  return join(GOLDEN, `${name}.txt`);
}

/** At the small size the golden text stands for two in three of the commands of a section that no other needs. */
export async function rerun(name: string, session: Session): Promise<string> {
  const sections = readFileSync(goldenPath(name), 'utf8').split(/\n(?=# )/);
  const parts: string[] = [];
  for (const section of sections.map((text) => text.split(/\n(?=\$ )/))) {
    const alone = section.filter((part) => STANDS_ALONE.test(part));
    const tried = someOf(alone, Math.ceil(alone.length / 3));
    for (const part of section) {
      const [line = ''] = part.split('\n');
      if (alone.includes(part) && !tried.includes(part)) parts.push(part);
      else if (line.startsWith('# ')) parts.push(`${line}\n`);
      else if (line.startsWith('$ ')) parts.push(`${line}\n${await runLine(line.slice(2), session)}`);
    }
  }
  return parts.join('\n');
}

async function runLine(line: string, session: Session): Promise<string> {
  const { stdout, stderr, code } = await runShell(line, session);
  const errors = stderr === '' ? '' : stderr.replace(/^/gm, '! ').replace(/! $/, '');
  return normalise(`${stdout}${errors}exit ${code}\n`, session);
}

export function runShell(
  line: string,
  { folder, env }: Session,
): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }> {
  const isOurs = (name: string): boolean => /^(?:SVC_|XDG_|NODE_(?!COMPILE_CACHE$))/.test(name);
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOurs(name)));
  const { promise, resolve } = Promise.withResolvers<{ stdout: string; stderr: string; code: number }>();
  const child = execFile(
    'sh',
    ['-c', `umask 022\n${line}`], // what others may do with a file is part of what is tested
    { cwd: folder, env: { ...clean, PATH: `${BIN}:${process.env['PATH']}`, HOME: folder, ...env } },
    (error, stdout, stderr) => resolve({ stdout, stderr, code: typeof error?.code === 'number' ? error.code : 0 }),
  );
  child.stdin?.end();
  return promise;
}

/** Ports and folders differ from run to run. */
function normalise(text: string, { folder }: Session): string {
  return text.replaceAll(folder, 'FOLDER').replaceAll(/(localhost|127\.0\.0\.1):(?!9443)\d{4,5}(?!\d)/g, '$1:PORT');
}
