// `strongroom slashing …`: the slashing protection records of the configured backend, with the server stopped (sqlite) or
// running (the others). Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 usage or a store that
// cannot be used, 2 a file that is refused as a whole, 78 a configuration that cannot be used.

import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { canonicalPublicKey, encodeHex } from '../api/hex.ts';
import { renderViolations } from '../api/violations.ts';
import { commandIntegrityKey } from '../boot/chamber.ts';
import { networkOf } from '../boot/network.ts';
import { openSlashingBackend } from '../boot/slashing.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { systemClock } from '../observe/clock.ts';
import { createLogger } from '../observe/logger.ts';
import { readInterchange, writeInterchange } from '../slashing/interchange/file.ts';
import { InterchangeError } from '../slashing/interchange/json-pieces.ts';
import { PRUNE_STEP_ENTRIES } from '../slashing/pruning.ts';
import type { SlashingBackend, ValidatorHistory } from '../slashing/types.ts';
import { SLASHING_HELP } from './slashing-help.ts';

export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

const EXIT = { ok: 0, failed: 1, refused: 2, configuration: 78 } as const;
/** Keys between two lines of progress. */
const PROGRESS_KEYS = 10_000;

interface Arguments {
  readonly config: string;
  readonly output: string | undefined;
  readonly publicKeys: readonly string[] | undefined;
  readonly file: string | undefined;
  readonly asMinimal: boolean;
}

interface Open {
  readonly backend: SlashingBackend;
  readonly genesisValidatorsRoot: string;
  readonly terminal: Terminal;
  readonly args: Arguments;
}

const COMMANDS: Readonly<Record<string, (open: Open) => Promise<number>>> = {
  export: exportFile,
  import: importFile,
  prune,
  status,
};

/** @returns the exit code */
export async function runSlashingCommand(argv: readonly string[], terminal: Terminal): Promise<number> {
  const [name = '--help', ...rest] = argv;
  if (rest.includes('--help') || rest.includes('-h') || ['--help', '-h', 'help'].includes(name)) {
    terminal.stdout.write(SLASHING_HELP);
    return argv.length === 0 ? EXIT.failed : EXIT.ok;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return usage(terminal, `there is no command slashing ${name}`);
  const args = readArguments(name, rest);
  if ('problem' in args) return usage(terminal, args.problem);
  const loaded = loadConfig({ argv: ['-c', args.config], env: terminal.env }, { compiledCeremony: false });
  if (!loaded.ok) {
    terminal.stderr.write(renderViolations(loaded.violations));
    return EXIT.configuration;
  }
  try {
    return await withBackend(loaded.config, args, terminal, command);
  } catch (error) {
    if (error instanceof InterchangeError) {
      terminal.stderr.write(`strongroom: the file is refused as a whole, nothing was merged: ${error.message}\n`);
      return EXIT.refused;
    }
    terminal.stderr.write(`strongroom: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT.failed;
  }
}

function readArguments(name: string, argv: readonly string[]): Arguments | { readonly problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: name === 'import',
      options: {
        config: { type: 'string', short: 'c' },
        ...(name === 'export' ? { output: { type: 'string' }, pubkeys: { type: 'string' } } : {}),
        ...(name === 'import' ? { 'as-minimal': { type: 'boolean' } } : {}),
      } as const,
    });
    const { 'as-minimal': asMinimal = false, ...texts } = values as { readonly 'as-minimal'?: boolean };
    const { config, output, pubkeys } = texts as Readonly<Record<string, string | undefined>>;
    if (config === undefined) return { problem: 'name the configuration file with -c' };
    if (name === 'import' && positionals.length !== 1) return { problem: 'name one file to import, or - for stdin' };
    const publicKeys = pubkeys?.split(',').map((key) => canonicalPublicKey(key.trim()));
    if (publicKeys?.includes(undefined) === true) return { problem: '--pubkeys: a public key is 48 bytes of hex' };
    return { config, output, publicKeys: publicKeys as string[] | undefined, file: positionals[0], asMinimal };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function usage({ stderr }: Terminal, problem: string): number {
  stderr.write(`strongroom: ${problem}\nSee strongroom slashing --help\n`);
  return EXIT.failed;
}

async function withBackend(
  config: Config,
  args: Arguments,
  terminal: Terminal,
  command: (open: Open) => Promise<number>,
): Promise<number> {
  const network = networkOf(config);
  const logger = createLogger({ level: 'warn', format: 'text', color: false }, terminal.stderr);
  const integrityKey = await commandIntegrityKey(config, { logger });
  const backend = await openSlashingBackend({ config, network, integrityKey }, { logger, clock: systemClock }).finally(
    () => integrityKey?.fill(0),
  );
  try {
    const genesisValidatorsRoot = encodeHex(network.genesisValidatorsRoot);
    return await command({ backend, genesisValidatorsRoot, terminal, args });
  } finally {
    await backend.close();
  }
}

/** To a file: first beside it, then in its place, so that a broken export never looks like a whole one. */
async function exportFile({ backend, genesisValidatorsRoot, terminal, args }: Open): Promise<number> {
  let validators = 0;
  async function* counted(): AsyncGenerator<ValidatorHistory> {
    for await (const history of backend.exportHistories(args.publicKeys)) {
      validators += 1;
      if (validators % PROGRESS_KEYS === 0) terminal.stderr.write(`${validators} keys …\n`);
      yield history;
    }
  }
  const text = Readable.from(writeInterchange(counted(), genesisValidatorsRoot));
  if (args.output === undefined) {
    await pipeline(text, terminal.stdout, { end: false });
  } else {
    const partial = `${args.output}.partial`;
    await pipeline(text, createWriteStream(partial, { mode: 0o600 }));
    await rename(partial, args.output);
  }
  terminal.stderr.write(`exported the records of ${validators} keys\n`);
  return EXIT.ok;
}

async function importFile({ backend, genesisValidatorsRoot, terminal, args }: Open): Promise<number> {
  const source = args.file === '-' || args.file === undefined ? terminal.stdin : createReadStream(args.file);
  let validators = 0;
  async function* counted(): AsyncGenerator<ValidatorHistory> {
    for await (const history of readInterchange(source as AsyncIterable<Buffer>, genesisValidatorsRoot)) {
      validators += 1;
      if (validators % PROGRESS_KEYS === 0) terminal.stderr.write(`${validators} keys …\n`);
      yield history;
    }
  }
  const summary = await backend.importHistories(counted(), { strategy: args.asMinimal ? 'minimal' : 'by_key' });
  terminal.stdout.write(
    `keys: ${summary.validators}\nblocks: ${summary.blocks}\nattestations: ${summary.attestations}\n` +
      `already present: ${summary.alreadyPresent}\nconflicts: ${summary.conflicts}\n`,
  );
  if (summary.conflicts > 0) {
    terminal.stderr.write('The file and the records hold slashable messages; both are kept, so nothing is weakened.\n');
  }
  return EXIT.ok;
}

async function prune({ backend, terminal }: Open): Promise<number> {
  let total = 0;
  for (let deleted = -1; deleted !== 0; total += deleted) deleted = await backend.pruneStep(PRUNE_STEP_ENTRIES);
  terminal.stdout.write(`pruned entries: ${total}\n`);
  return EXIT.ok;
}

async function status({ backend, terminal }: Open): Promise<number> {
  const { validators, blocks, attestations, genesisValidatorsRoot } = await backend.status();
  terminal.stdout.write(
    `backend: ${backend.name}\ngenesis validators root: ${genesisValidatorsRoot}\n` +
      `keys: ${validators}\nblocks: ${blocks}\nattestations: ${attestations}\n`,
  );
  return EXIT.ok;
}
