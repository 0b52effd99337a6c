// What KEEP=1 adds to a demonstration: its world stays until somebody ends it, with a profile and tokens in a folder
// that is named, and commands to try, which are whole lines for a shell in the project's folder.

import type { ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stringify } from 'yaml';

const ROOT = join(import.meta.dirname, '..');

export interface Kept {
  /** Where everything is written; made anew. */
  readonly folder: string;
  /** By the name of the file. */
  readonly tokens: Readonly<Record<string, string>>;
  /** As in the file of profiles, with the name of a token's file as the token. */
  readonly profiles: Readonly<Record<string, { readonly signer_url: string; readonly token: string }>>;
  readonly tries: readonly { readonly what: string; readonly command: string }[];
  /** What else is in the folder. */
  readonly files?: string;
  /** The signers of now: one that ends by itself is told of. */
  running(): readonly { readonly name: string; readonly ended: Promise<string> }[];
  /** What SIGUSR2 does. */
  restart?(): Promise<void>;
}

export function isKept(): boolean {
  return !['', '0', undefined].includes(process.env['KEEP']);
}

/** The folder as a command names it. */
export function shown(path: string): string {
  return relative(ROOT, path);
}

/** How it ended: its exit code, or the signal. */
export async function ended(child: ChildProcess): Promise<string> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return signal ?? `exit code ${code}`;
}

/** Write it, say it, and wait for the end. */
export async function keep({ folder, tokens, profiles, tries, files, running, restart }: Kept): Promise<void> {
  const config = join(folder, 'config/strongroom');
  mkdirSync(config, { recursive: true, mode: 0o700 });
  for (const [name, token] of Object.entries(tokens)) writeFileSync(join(folder, name), token, { mode: 0o600 });
  const entries = Object.entries(profiles).map(([name, { signer_url, token }]) => [
    name,
    { signer_url, allow_plaintext_signer: true, token: `@${join(folder, token)}` },
  ]);
  const yaml = stringify({ profiles: Object.fromEntries(entries) });
  writeFileSync(join(config, 'operator.yaml'), `# From a demonstration, with TEST keys.\n${yaml}`, { mode: 0o600 });
  const env = join(folder, 'env');
  writeFileSync(env, `export PATH="${join(ROOT, 'bin')}:$PATH" XDG_CONFIG_HOME="${join(folder, 'config')}"\n`);
  const pid = join(folder, 'pid');
  writeFileSync(pid, `${process.pid}\n`);
  process.stdout.write(`\n== It runs on: try it from another terminal, in ${ROOT}\n`);
  process.stdout.write(`First, so that it finds strongroom and the profiles:\n  $ . ${shown(env)}\n`);
  for (const { what, command } of tries) process.stdout.write(`${what}:\n  $ ${command}\n`);
  process.stdout.write(`
Profile and tokens:  ${shown(folder)} (${Object.keys(tokens).join(', ')}; config/strongroom/operator.yaml)
${files === undefined ? '' : `Beside them:         ${files}\n`}To stop it:          Ctrl-C here, or: kill $(cat ${shown(pid)})
`);
  const watch = watcher(running, restart === undefined ? 'stop this, and start it again' : RESTARTS);
  watch.begin();
  const restarting = restart === undefined ? never() : restarts(restart, watch);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), restarting]);
  watch.end(); // Ctrl-C has reached them, too
  rmSync(pid, { force: true });
  process.stdout.write('stopped\n');
}

const RESTARTS = `kill -USR2 ${process.pid} restarts it`;

interface Watch {
  begin(): void;
  /** Those that end from now on are meant to. */
  end(): void;
}

function watcher(running: Kept['running'], advice: string): Watch {
  let watched: object | undefined;
  return {
    begin() {
      const these = {};
      watched = these;
      for (const { name, ended } of running()) {
        void ended.then((how) => {
          if (watched === these) process.stdout.write(`${name} has ended by itself (${how}): ${advice}\n`);
        });
      }
    },
    end() {
      watched = undefined;
    },
  };
}

/** Restarts at each SIGUSR2, and never ends by itself. @throws what a restart throws */
async function restarts(restart: () => Promise<void>, watch: Watch): Promise<never> {
  for await (const _ of on(process, 'SIGUSR2')) {
    process.stdout.write('restarting\n');
    watch.end();
    await restart();
    watch.begin();
    process.stdout.write('restarted\n');
  }
  return never();
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
