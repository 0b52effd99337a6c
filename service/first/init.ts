// `strongroom init`: a configuration for one signer on this machine, its folders, and a token each for the validator
// client and the operator, whose files only their owner reads. It overwrites nothing: what is there already ends it
// before anything is written, and a fault on the way removes what this run made.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, type Stats, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import type { Flags } from '../../common/command-line/command.ts';
import { adviceOn, shownErrorCode } from '../../common/command-line/file-faults.ts';
import { painter } from '../../common/command-line/paint.ts';
import { plural, quoted } from '../../common/command-line/printable.ts';
import { command, type WordsOf } from '../../common/command-line/program.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { PUBLIC_NETWORKS } from '../../signer/api/network-table.ts';
import { hasForeignName } from '../../signer/keys/files/foreign-file.ts';
import { lookAtStart, reportCheck } from '../commands/check.ts';
import { loadConfig } from '../config/load.ts';
import { CLIENTS, type ClientName, linesFor } from './clients.ts';
import { configurationText, type Places, PORTS } from './configuration-text.ts';
import { FirstStepFailure } from './failure.ts';
import { pathLine } from './path-line.ts';

const DEFAULT_FOLDER = 'strongroom';
const OWNER_ONLY = { file: 0o600, folder: 0o700 } as const;

/** The genesis of the others is another one each time, or is given in a file. */
const NETWORKS = Object.keys(PUBLIC_NETWORKS).filter((name) => name !== 'ephemery');

const FLAGS = {
  network: {
    placeholder: 'NAME',
    choices: NETWORKS,
    meaning: 'The network whose messages are signed; mainnet when not given',
  },
  keys: { placeholder: 'DIR', meaning: 'The folder of the keys, which stays as it is; FOLDER/keys when not given' },
  passwords: {
    placeholder: 'PATH',
    meaning:
      'Passwords of the keystores: a folder with NAME.txt for NAME.json, or one file; FOLDER/passwords when not given',
  },
  client: {
    placeholder: 'NAME',
    choices: CLIENTS,
    repeatable: true,
    meaning: 'Print what this validator client needs to use the signer',
  },
  operator: { meaning: 'Write a profile too (operator.yaml), so that strongroom operator needs no flags' },
} as const satisfies Flags;

const DESCRIPTION = {
  summary: 'Write a configuration, folders and tokens for a signer on this machine',
  argument: {
    name: 'FOLDER',
    count: 'optional',
    meaning: `Where it is written; ${DEFAULT_FOLDER} in the present folder when not given`,
  },
  flags: FLAGS,
  notes: [
    'It writes strongroom.yaml, keys, passwords, records and tokens below FOLDER, and looks at them as server --check ' +
      'does. It overwrites nothing.',
  ],
  examples: ['strongroom init', 'strongroom init /etc/strongroom --keys /etc/keystores --client prysm --operator'],
} as const;

export const init = command(
  DESCRIPTION,
  async ({ values, argument }: WordsOf<typeof DESCRIPTION>, terminal: Terminal) => {
    const folder = resolve(argument === '' ? DEFAULT_FOLDER : argument);
    const plan = planOf(folder, values, terminal.env);
    const there = plan.files.map(({ path }) => path).filter((path) => existsSync(path));
    if (there.length > 0)
      throw new FirstStepFailure(`nothing is overwritten, and there is already ${there.map(shown).join(', ')}`, [
        'name another FOLDER, or move it away',
      ]);
    writeAll(plan);
    await tell(plan, values, terminal);
  },
);

interface Plan {
  readonly places: Places;
  readonly configuration: string;
  readonly folders: readonly string[];
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly profile: string | undefined;
  readonly keyCount: number;
}

type Given = WordsOf<typeof DESCRIPTION>['values'];

/** @throws FirstStepFailure */
function planOf(folder: string, { network = 'mainnet', keys, passwords, operator }: Given, env: Terminal['env']): Plan {
  const configuration = join(folder, 'strongroom.yaml');
  const found = keysIn(keys === undefined ? undefined : resolve(keys));
  const tokens = { client: join(folder, 'tokens/validator-client'), operator: join(folder, 'tokens/operator') };
  const from = keySource(folder, found, passwords);
  const records = join(folder, 'records/slashing_protection.sqlite');
  const places: Places = { network, keys: from, records, tokens };
  const made = 'keystores' in from && 'folder' in from.passwords ? [from.passwords.folder] : [];
  const profile = operator ? profileOf(tokens.operator, env) : undefined;
  return {
    places,
    configuration,
    folders: [
      folder,
      ...('keystores' in from ? [from.keystores] : []),
      ...made,
      dirname(records),
      dirname(tokens.client),
      ...(profile === undefined ? [] : [dirname(profile.path)]),
    ],
    files: [
      { path: tokens.client, text: `${newToken()}\n` },
      { path: tokens.operator, text: `${newToken()}\n` },
      { path: configuration, text: configurationText(places) },
      ...(profile === undefined ? [] : [profile]),
    ],
    profile: profile?.path,
    keyCount: found?.count ?? 0,
  };
}

interface KeysFound {
  readonly folder: string;
  readonly kind: 'descriptors' | 'keystores';
  readonly count: number;
}

/** What a folder of keys holds, by the names of its files. @throws FirstStepFailure */
function keysIn(folder: string | undefined): KeysFound | undefined {
  if (folder === undefined) return undefined;
  const names = listed(folder);
  const descriptors = names.filter((name) => /\.ya?ml$/i.test(name));
  const keystores = names.filter((name) => /\.json$/i.test(name) && !hasForeignName(name));
  return descriptors.length > 0
    ? { folder, kind: 'descriptors', count: descriptors.length }
    : { folder, kind: 'keystores', count: keystores.length };
}

function keySource(folder: string, found: KeysFound | undefined, passwords: string | undefined): Places['keys'] {
  if (found?.kind === 'descriptors') {
    if (passwords !== undefined)
      throw new FirstStepFailure(`${found.folder} has a YAML file for each key, which names its password`, [
        'leave --passwords out',
      ]);
    return { descriptors: found.folder };
  }
  const keystores = found?.folder ?? join(folder, 'keys');
  if (passwords === undefined) return { keystores, passwords: { folder: join(folder, 'passwords') } };
  const path = resolve(passwords);
  return { keystores, passwords: statOf(path).isDirectory() ? { folder: path } : { file: path } };
}

function profileOf(token: string, env: Terminal['env']): { readonly path: string; readonly text: string } {
  const configured = env['XDG_CONFIG_HOME'];
  // XDG Base Directory Specification: a relative path is invalid and is ignored.
  const base = configured !== undefined && isAbsolute(configured) ? configured : join(homedir(), '.config');
  const profile = { signer_url: `http://127.0.0.1:${PORTS.http}`, allow_plaintext_signer: true, token: `@${token}` };
  const text = `# Written by strongroom init.\nprofiles:\n  default: ${JSON.stringify(profile)}\n`;
  return { path: join(base, 'strongroom/operator.yaml'), text };
}

function newToken(): string {
  return `sr_client_${randomBytes(32).toString('base64url')}`;
}

/** Never over a file. @throws FirstStepFailure, after removing what it made */
function writeAll({ folders, files }: Plan): void {
  const made: (() => void)[] = [];
  let at = '';
  try {
    for (const folder of folders) {
      at = folder;
      for (const missing of missingFolders(folder)) {
        mkdirSync(missing, { mode: OWNER_ONLY.folder });
        made.push(() => rmdirSync(missing));
      }
    }
    for (const { path, text } of files) {
      at = path;
      writeFileSync(path, text, { flag: 'wx', mode: OWNER_ONLY.file, flush: true });
      made.push(() => rmSync(path, { force: true }));
    }
  } catch (error) {
    for (const undo of made.toReversed()) undo();
    throw unusable(at, 'be written', error);
  }
}

/** Down to this one. One at a time: some file systems answer a recursive mkdir with ENOENT for ever. */
function missingFolders(folder: string): readonly string[] {
  if (existsSync(folder)) return [];
  return [...missingFolders(dirname(folder)), folder];
}

async function tell(plan: Plan, { client = [] }: Given, terminal: Terminal): Promise<void> {
  const { stdout, env } = terminal;
  const { places, configuration, profile, keyCount } = plan;
  const paint = painter(stdout, env);
  const { tokens } = places;
  const rows: readonly (readonly [string, string])[] = [
    [configuration, `the configuration (${places.network})`],
    [tokens.client, 'the token of the validator client'],
    [tokens.operator, "the operator's token"],
    [dirname(places.records), 'the records of what was signed'],
    ...keyRows(places, keyCount),
    ...(profile === undefined ? [] : ([[profile, "the operator's profile"]] as const)),
  ].map(([path = '', what = '']) => [shown(path), what]);
  const width = Math.max(...rows.map(([path]) => path.length));
  stdout.write(
    `${paint('Written', 'good')}\n${rows.map(([path, what]) => `  ${path.padEnd(width)}  ${what}\n`).join('')}`,
  );

  stdout.write('\nChecked\n');
  const loaded = loadConfig({ argv: ['-c', configuration], env: {} }, { compiledCeremony: false });
  if (!loaded.ok)
    throw new FirstStepFailure('the configuration cannot be used', [
      `see strongroom server --check -c ${shown(configuration)}`,
    ]);
  reportCheck({ ...loaded, ignoredVariables: [] }, await lookAtStart(loaded.config, { offline: false }), terminal);

  const url = new URL(`http://127.0.0.1:${PORTS.http}`);
  const operate =
    profile === undefined
      ? `strongroom operator status --signer-url ${url.origin} --allow-plaintext-signer --token @${shown(tokens.operator)}`
      : 'strongroom operator status';
  const path = pathLine(process.argv[1], env['PATH']);
  const steps = [
    ...(path === undefined ? [] : [path]),
    'New keys, or keys that have signed elsewhere? If they have, stop what signs with them, and import their record:',
    `  strongroom slashing import FILE -c ${shown(configuration)}   (docs/guides/migrate.md)`,
    ...(keyCount === 0 ? [keyAdvice(places)] : []),
    `strongroom server -c ${shown(configuration)}`,
    operate,
  ];
  stdout.write(`\nNext\n${steps.map((step) => `  ${step}\n`).join('')}`);
  for (const name of client as readonly ClientName[]) {
    const lines = linesFor(name, { url, token: shown(tokens.client) }).split('\n');
    stdout.write(`\n${name}\n${lines.map((line) => `  ${line}\n`).join('')}`);
  }
  if (client.length === 0)
    note(terminal, `\nFlags of a validator client: --client NAME (${CLIENTS.join(', ')}), or docs/guides/clients.md`);
}

function keyRows({ keys }: Places, count: number): readonly (readonly [string, string])[] {
  if ('descriptors' in keys) return [[keys.descriptors, plural(count, 'key')]];
  const { keystores, passwords } = keys;
  return [
    [keystores, count === 0 ? 'keystores, NAME.json each: none yet' : plural(count, 'keystore')],
    'folder' in passwords ? [passwords.folder, 'their passwords, NAME.txt each'] : [passwords.file, 'their password'],
  ];
}

function keyAdvice({ keys }: Places): string {
  if ('descriptors' in keys) return `put keys into ${shown(keys.descriptors)}`;
  return `put keystores (NAME.json) into ${shown(keys.keystores)}${'folder' in keys.passwords ? `, their passwords (NAME.txt) into ${shown(keys.passwords.folder)}` : ''}`;
}

/** From the present folder when it lies below, else from the root. */
function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near === '' || near.startsWith('..') ? path : near;
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw unusable(folder, 'be read', error);
  }
}

function statOf(path: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    throw unusable(path, 'be read', error);
  }
}

function unusable(path: string, what: string, error: unknown): FirstStepFailure {
  const code = shownErrorCode(error);
  const advice = adviceOn(code);
  return new FirstStepFailure(`${quoted(path)} cannot ${what} (${code})`, advice === undefined ? [] : [advice]);
}
