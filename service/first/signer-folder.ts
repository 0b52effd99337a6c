// The folder of a signer on this machine: its configuration, keys, passwords, records, and a token each for the
// validator client and the operator, whose files only their owner reads. Nothing is overwritten: what is there and
// differs ends it before anything is written. The configuration is the last that is written, each file is whole or not
// there, and a fault removes what this run made: without the whole folder there is nothing that a signer starts with.

import { randomBytes } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Flags, Values } from '../../common/command-line/command.ts';
import { painter } from '../../common/command-line/paint.ts';
import { profilePath } from '../../common/command-line/profile-path.ts';
import { syncFolderNow } from '../../common/command-line/sync-folder.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { PUBLIC_NETWORKS } from '../../signer/api/network-table.ts';
import { lookAtStart, reportCheck } from '../commands/check.ts';
import { loadConfig } from '../config/load.ts';
import { CLIENTS, type ClientName, linesFor } from './clients.ts';
import { type Configuration, PORTS } from './configuration-text.ts';
import { FirstStepFailure, unusablePath } from './failure.ts';
import { pathLine } from './path-line.ts';

export const DEFAULT_FOLDER = 'strongroom';
export const SIGNER_URL = new URL(`http://127.0.0.1:${PORTS.http}`);
const OWNER_ONLY = { file: 0o600, folder: 0o700 } as const;

/** The genesis of the others is another one each time, or is given in a file. */
const NETWORKS = Object.keys(PUBLIC_NETWORKS).filter((name) => name !== 'ephemery');

export const SIGNER_FLAGS = {
  network: {
    placeholder: 'NAME',
    choices: NETWORKS,
    meaning: 'The network whose messages are signed; mainnet when not given',
  },
  client: {
    placeholder: 'NAME',
    choices: CLIENTS,
    repeatable: true,
    meaning: 'Print what this validator client needs to use the signer',
  },
} as const satisfies Flags;

export interface WrittenFile {
  readonly path: string;
  readonly text: string | Uint8Array;
}

export interface SignerFolder extends Pick<Configuration, 'network' | 'keys' | 'passwords' | 'records' | 'tokens'> {
  readonly path: string;
  readonly configuration: string;
  /** Undefined: one is there, and stays, or none can be written. */
  readonly profile: WrittenFile | undefined;
}

export function signerFolder(
  given: string,
  { network = 'mainnet' }: Values<typeof SIGNER_FLAGS>,
  env: Terminal['env'],
): SignerFolder {
  const path = resolve(given);
  const tokens = { client: join(path, 'tokens/validator-client'), operator: join(path, 'tokens/operator') };
  return {
    network,
    path,
    configuration: join(path, 'strongroom.yaml'),
    keys: join(path, 'keys'),
    passwords: join(path, 'passwords'),
    records: join(path, 'records/slashing_protection.sqlite'),
    tokens,
    profile: profileFor(tokens.operator, env),
  };
}

/** So that strongroom operator needs no flags. */
function profileFor(token: string, env: Terminal['env']): WrittenFile | undefined {
  const profile = { signer_url: SIGNER_URL.origin, allow_plaintext_signer: true, token: `@${token}` };
  const text = `# Written by strongroom.\nprofiles:\n  default: ${JSON.stringify(profile)}\n`;
  const path = profilePath(env);
  const isOurs = existsSync(path) ? holds(path, Buffer.from(text)) : canBeMade(path);
  return isOurs ? { path, text } : undefined;
}

/** A user without a home has no profile. */
function canBeMade(path: string): boolean {
  try {
    const [absent = path] = missingFolders(dirname(path));
    accessSync(dirname(absent), constants.W_OK | constants.X_OK);
    return statSync(dirname(absent)).isDirectory();
  } catch {
    return false;
  }
}

/** All that is written but keys. @param keptTokens those of a run that was cut stay */
export function filesOf(
  { tokens, profile, configuration }: SignerFolder,
  text: string,
  keptTokens = false,
): readonly WrittenFile[] {
  const missing = Object.values(tokens).filter((path) => !keptTokens || !existsSync(path));
  return [
    ...missing.map((path) => ({ path, text: `sr_client_${randomBytes(32).toString('base64url')}\n` })),
    ...(profile === undefined ? [] : [profile]),
    { path: configuration, text },
  ];
}

/** @throws FirstStepFailure, after removing what it made */
export function writeAll(folders: readonly string[], files: readonly WrittenFile[]): void {
  const missing = files.filter(({ path, text }) => !holds(path, Buffer.from(text)));
  const there = missing.map(({ path }) => path).filter((path) => existsSync(path));
  if (there.length > 0)
    throw new FirstStepFailure(`nothing is overwritten, and there is already ${there.map(shown).join(', ')}`, [
      'name another folder, or move it away',
    ]);
  const made: (() => void)[] = [];
  let at = '';
  try {
    for (const folder of [...folders, ...missing.map(({ path }) => dirname(path))]) {
      for (const absent of missingFolders(folder)) {
        at = absent;
        mkdirSync(absent, { mode: OWNER_ONLY.folder });
        made.push(() => rmdirSync(absent));
      }
    }
    for (const { path, text } of missing) {
      at = path;
      rmSync(`${path}.new`, { force: true });
      made.push(() => rmSync(`${path}.new`, { force: true }));
      writeFileSync(`${path}.new`, text, { flag: 'wx', mode: OWNER_ONLY.file, flush: true });
      renameSync(`${path}.new`, path);
      made.push(() => rmSync(path, { force: true }));
      syncFolderNow(dirname(path));
    }
  } catch (error) {
    for (const undo of made.toReversed()) undo();
    throw unusablePath(at, 'be written', error);
  }
}

function holds(path: string, content: Buffer): boolean {
  try {
    return readFileSync(path).equals(content);
  } catch {
    return false;
  }
}

/** Down to this one. One at a time: some file systems answer a recursive mkdir with ENOENT for ever. */
function missingFolders(folder: string): readonly string[] {
  if (existsSync(folder)) return [];
  return [...missingFolders(dirname(folder)), folder];
}

interface NextSteps {
  /** Keys, passwords and what else is special. */
  readonly rows: readonly (readonly [path: string, what: string])[];
  /** Before the signer starts. */
  readonly before: readonly string[];
  /** Undefined: nothing is said of flags. */
  readonly clients: readonly string[] | undefined;
}

/** What was written, what its check finds, and what comes next. */
export async function showNextSteps(
  folder: SignerFolder,
  { rows, before, clients }: NextSteps,
  terminal: Terminal,
): Promise<void> {
  const { stdout, env } = terminal;
  const { network, configuration, tokens, records, profile } = folder;
  const written = [
    [configuration, `the configuration (${network})`],
    [tokens.client, 'the token of the validator client'],
    [tokens.operator, "the operator's token"],
    [dirname(records), 'the records of what was signed'],
    ...rows,
    ...(profile === undefined ? [] : [[profile.path, "the operator's profile, for strongroom operator without flags"]]),
  ].map(([path = '', what = '']) => [shown(path), what] as const);
  const width = Math.max(...written.map(([path]) => path.length));
  const lines = written.map(([path, what]) => `  ${path.padEnd(width)}  ${what}\n`);
  stdout.write(`${painter(stdout, env)('Written', 'good')}\n${lines.join('')}\nChecked\n`);
  const loaded = loadConfig({ argv: ['-c', configuration], env: {} }, { compiledCeremony: false });
  if (!loaded.ok)
    throw new FirstStepFailure('the configuration cannot be used', [
      `see strongroom server --check -c ${shown(configuration)}`,
    ]);
  reportCheck({ ...loaded, ignoredVariables: [] }, await lookAtStart(loaded.config, { offline: false }), terminal);

  const path = pathLine(process.argv[1], env['PATH']);
  const steps = [
    ...(path === undefined ? [] : [path]),
    ...before,
    `strongroom server -c ${shown(configuration)}`,
    profile === undefined
      ? `strongroom operator status --signer-url ${SIGNER_URL.origin} --allow-plaintext-signer --token @${shown(tokens.operator)}`
      : 'strongroom operator status',
  ];
  stdout.write(`\nNext\n${steps.map((step) => `  ${step}\n`).join('')}`);
  for (const name of (clients ?? []) as readonly ClientName[]) {
    const flags = linesFor(name, { url: SIGNER_URL, token: shown(tokens.client) }).split('\n');
    stdout.write(`\n${name}\n${flags.map((line) => `  ${line}\n`).join('')}`);
  }
  if (clients?.length === 0)
    note(terminal, `\nFlags of a validator client: --client NAME (${CLIENTS.join(', ')}), or docs/guides/clients.md`);
}

/** From the present folder when it lies below, else from the root. */
export function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near === '' || near.startsWith('..') ? path : near;
}
