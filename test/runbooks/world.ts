// What every world of a rehearsal has: a folder, the programs on PATH, addresses of this process's own for the machines
// of its signers, and an environment that leads to the stand-ins and nowhere else.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnvironment } from '../../rehearsal/signer.ts';
import { type Program, startPrograms } from './programs.ts';
import type { World } from './rehearse.ts';

export const ROOT = join(import.meta.dirname, '../..');

export interface WorldParts {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, string>>;
  readonly programs: Readonly<Record<string, Program>>;
}

export interface OpenWorld extends World {
  /** For programs that are scripts of their own. */
  readonly bin: string;
  close(): Promise<void>;
}

export async function openWorld({ folder, env, values, programs }: WorldParts): Promise<OpenWorld> {
  const { folder: bin, close } = await startPrograms(folder, programs);
  const reader = join(folder, 'reader');
  mkdirSync(reader);
  return {
    folder: reader,
    bin,
    values,
    env: {
      ...(cleanEnvironment() as Record<string, string>),
      ...{ HOME: reader, XDG_CONFIG_HOME: join(reader, '.config'), TERM: 'dumb', NO_COLOR: '1' },
      ...env,
      PATH: `${bin}:${join(ROOT, 'bin')}:${process.env['PATH']}`,
    },
    close,
  };
}
