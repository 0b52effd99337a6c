// `strongroom web3signer [global options] eth2 [options] [command]`: Web3Signer's command line, environment and YAML
// file, translated into a configuration, with which the signer or a `strongroom slashing` command runs. It trusts what
// the configuration trusts and decides nothing about a signature. It refuses a start, and an export, while the store
// does not have the record of the database of Web3Signer that is named. Exit codes: those of the server and of
// `strongroom slashing`; 78 for options that cannot be used.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { note } from '../../common/command-line/terminal.ts';
import type { Violation } from '../../common/command-line/violations.ts';
import { writeViolations } from '../../common/command-line/violations-report.ts';
import { VERSION_LINE } from '../../signer/api/version.ts';
import { main as runSlashing } from '../commands/slashing.ts';
import { web3SignerNames } from '../commands/web3signer-name.ts';
import { type LoadedConfiguration, type LoadInput, loadConfig } from '../config/load.ts';
import { openKeyFilesLater } from '../key-files.ts';
import { serve, web3SignersOf } from '../main.ts';
import { SERVICE_PARTS } from '../parts.ts';
import { POLICY } from './access.ts';
import { type Arguments, readWeb3SignerArguments, type Web3SignerCommand } from './arguments.ts';
import { readWeb3SignerFile } from './config-file.ts';
import { DATABASE_URL, importCommandLine } from './database.ts';
import { readEnvironment, type Web3SignerEnvironment } from './environment.ts';
import { type GivenOptions, merged, type OptionWarning } from './given.ts';
import { settleImported } from './imported-keystores.ts';
import { web3SignerFlag } from './option.ts';
import { CONFIG_FILE } from './options/options.ts';
import { writingPorts } from './ports-file.ts';
import { recordPlaces, translate } from './translate.ts';
import type { Translation } from './translation.ts';
import { type YamlSection, yamlText } from './yaml-text.ts';

const FILE = 'the options of Web3Signer';

export async function main(argv: readonly string[]): Promise<void> {
  const args = readWeb3SignerArguments(argv);
  if (args.version) process.stdout.write(VERSION_LINE);
  else await runFront(args);
}

async function runFront(args: Arguments): Promise<void> {
  const { given, translation } = translated(args, process.env);
  if (!args.isEth2) translation.refuse(NO_COMMAND);
  const first = checked(translation);
  if (first === undefined) return;
  const starts = !args.printConfig && args.command === undefined;
  const needsRecord = starts || (!args.printConfig && args.command === 'export');
  const hindrance =
    misplacedRecord(first.loaded, { given, translation }, starts) ??
    (needsRecord ? await missingImport(first.loaded, given) : undefined);
  if (hindrance !== undefined) return refuse([hindrance]);
  settleImported(translation, given, { folder: process.cwd(), env: process.env, starts });
  const settled = checked(translation);
  if (settled === undefined) return;
  if (args.printConfig) return printConfig(translation, given);
  if (args.command !== undefined) {
    sayAll(translation.warnings);
    return runCommand(args.command, given, settled.input);
  }
  const openListeners = writingPorts(given, SERVICE_PARTS.openListeners);
  const parts = { ...SERVICE_PARTS, openKeyFiles: openKeyFilesLater, openListeners };
  await serve(settled.input, [...translation.warnings, ...openDoors(settled.loaded)], parts);
}

type Good = Extract<LoadedConfiguration, { ok: true }>;

interface Checked {
  readonly input: LoadInput;
  readonly loaded: Good;
}

/** Undefined when the configuration is refused; the refusal is printed then. */
function checked(translation: Translation): Checked | undefined {
  const text = Buffer.from(yamlText(translation.config));
  const input: LoadInput = { argv: ['-c', FILE], env: process.env, readFile: () => text };
  const loaded = translation.violations.length > 0 ? undefined : loadConfig(input, { compiledCeremony: false });
  const violations = [...translation.violations, ...(loaded === undefined ? [] : violationsOf(loaded, translation))];
  if (loaded?.ok === true && violations.length === 0) return { input, loaded };
  refuse(violations);
  return undefined;
}

export function translated(
  args: Arguments,
  env: Web3SignerEnvironment,
): { readonly given: GivenOptions; readonly translation: Translation } {
  const environment = readEnvironment(env);
  const file = readWeb3SignerFile(merged([args, environment]).get(CONFIG_FILE));
  const layers = [args, environment, file];
  const given = merged(layers);
  const translation = translate(given, process.cwd());
  translation.violations.unshift(...layers.flatMap(({ violations }) => violations));
  translation.warnings.unshift(...layers.flatMap(({ warnings }) => warnings));
  return { given, translation };
}

/** With the option of Web3Signer that led there. */
function violationsOf(loaded: LoadedConfiguration, translation: Translation): readonly Violation[] {
  if (loaded.ok) return [];
  return loaded.violations.map((violation) =>
    violation.origin.startsWith(FILE) || violation.origin === 'default'
      ? { ...violation, origin: translation.originOf(violation) ?? violation.origin }
      : violation,
  );
}

function refuse(violations: readonly Violation[]): void {
  writeViolations(violations, process);
  process.exitCode = EXIT.configuration;
}

const NO_COMMAND: Violation = {
  path: 'the command line',
  problem: 'does not say eth2',
  remedy: 'write `eth2` after the global options: strongroom web3signer [global options] eth2 [options]',
  origin: 'the command line',
};

/**
 * The whole configuration to stdout, and what to know of it to stderr. The file goes on alone: it says what has to
 * come before its first start.
 */
function printConfig(translation: Translation, given: GivenOptions): void {
  const left = [...given.values()].filter(({ option }) => option.becomes.kind !== 'honoured');
  const notes = [
    'Translated from options of Web3Signer by `strongroom web3signer --print-config`.',
    ...left.map(({ option }) => `Not translated: ${web3SignerFlag(option)}`),
    ...(given.has(DATABASE_URL) ? [`Before the first start: ${importCommandLine(given)}`] : []),
  ];
  process.stdout.write(notes.map((note) => `# ${note}\n`).join('') + yamlText(translation.config));
  sayAll([...translation.warnings, ...(isOpen(translation) ? [OPEN] : [])]);
}

function sayAll(warnings: readonly OptionWarning[]): void {
  for (const { at, says } of warnings) note(process, `warning: ${at} ${says}`);
}

async function runCommand(command: Web3SignerCommand, given: GivenOptions, input: LoadInput): Promise<void> {
  const { needs, argv } = COMMANDS[command];
  const missing = needs.filter((name) => !given.has(name));
  if (missing.length > 0) {
    sayFailure(process, 'strongroom', `eth2 ${command} needs --${missing.join(' and --')}`);
    process.exitCode = EXIT.failed;
    return;
  }
  await runSlashing([...argv((name) => given.get(name)?.value ?? ''), '-c', FILE], input);
}

interface RecordCommand {
  readonly needs: readonly string[];
  readonly argv: (given: (name: string) => string) => readonly string[];
}

/**
 * A jump by hand refuses all that a low watermark refuses: a key that voted up to its target epoch had no later source.
 */
const COMMANDS: Readonly<Record<Web3SignerCommand, RecordCommand>> = {
  export: { needs: ['to'], argv: (given) => ['export', `--output=${given('to')}`, '--force'] },
  import: { needs: ['from'], argv: (given) => ['import', given('from')] },
  'watermark-repair': {
    needs: ['slot', 'epoch'],
    argv: (given) => ['jump', `--slot=${given('slot')}`, `--epoch=${given('epoch')}`],
  },
};

/** What Web3Signer's database knows of these keys has to be here before the first signature, and before an export. */
async function missingImport({ config }: Good, given: GivenOptions): Promise<Violation | undefined> {
  const url = given.get(DATABASE_URL);
  if (url === undefined) return undefined;
  const names = web3SignerNames(url.value);
  const settled = await web3SignersOf(config, process.stderr);
  if (names.some((name) => settled.includes(name))) return undefined;
  const waiver = `strongroom slashing jump --waive-web3signer ${names[0] ?? 'HOST:PORT/DATABASE'} -c strongroom.yaml`;
  return {
    path: web3SignerFlag(url.option),
    problem:
      'names a database of Web3Signer that was not merged into the record here: what its keys signed would not be known',
    remedy:
      'stop Web3Signer for good, write the configuration with --print-config to strongroom.yaml, and run ' +
      `\`${importCommandLine(given)}\` (with its password, and ?sslmode=disable after the database where it has no TLS). ` +
      `When that database is empty, or gone for good, \`${waiver}\` refuses everything up to now instead`,
    origin: url.origin,
  };
}

function misplacedRecord(
  { config: { anti_slashing } }: Good,
  { given, translation }: ReturnType<typeof translated>,
  starts: boolean,
): Violation | undefined {
  const { backend, path } = anti_slashing;
  if (backend !== 'sqlite') return undefined;
  const fault = recordElsewhere(path, given) ?? (starts ? unwritable(dirname(path)) : undefined);
  if (fault === undefined) return undefined;
  const origin = translation.originOf({ path: 'anti_slashing.path', ...fault, origin: '' }) ?? 'default';
  return { path: 'the slashing record', ...fault, origin };
}

type RecordFault = Pick<Violation, 'problem' | 'remedy'>;

/**
 * One option more, or one less, names another folder: over a new record the keys would sign again what the old one
 * refuses. The folder of the start counts, too: a start without options begins the record there.
 */
function recordElsewhere(path: string, given: GivenOptions): RecordFault | undefined {
  const record = recordPlaces(given, process.cwd()).find((place) => existsSync(place));
  if (record === undefined || existsSync(path)) return undefined;
  const problem = `is ${record}; these options would begin another, ${path}, that knows nothing of what was signed`;
  const move = `move it there with all files ${record}-*`;
  const remedy = `stop what uses it, and ${move}; if it is of other keys, move it away`;
  return { problem, remedy };
}

/** No folder is made: a mistyped path would be a new, empty record. */
function unwritable(folder: string): RecordFault | undefined {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch {
    const remedy = 'create the folder and give it to the signer’s user, or name another with --data-path';
    return { problem: `is in a folder that cannot be written: ${folder}`, remedy };
  }
}

/** The configuration alone, without variables of strongroom, which --print-config does not print. */
function isOpen({ config }: Translation): boolean {
  return 'anonymous' in (config['static_auth'] as YamlSection);
}

/** Only while it is so: a token may be asked for by SVC_STATIC_AUTH. */
function openDoors({ config }: Good): readonly OptionWarning[] {
  return config.static_auth.anonymous.policies.includes(POLICY) ? [OPEN] : [];
}

const OPEN: OptionWarning = {
  at: 'static_auth',
  says:
    'lets callers without a token in, as Web3Signer does: whoever reaches the port signs with every key. To close ' +
    'it, go on with --print-config and give callers tokens (static_auth), or set SVC_STATIC_AUTH',
};
