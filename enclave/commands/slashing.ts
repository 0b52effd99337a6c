// `strongroom slashing …`: the slashing protection records of the configured backend, with the server stopped (sqlite)
// or running (the others). Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 usage or a store that
// cannot be used, 2 a file or database refused as a whole, 9
// merged with slashable messages, 78 a configuration that cannot be used.

import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { withAdvice } from '../../command-line/arguments.ts';
import { sayConflicts } from '../../command-line/conflicts.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { sayFailure, sayNoCommand, sayWrongUsage } from '../../command-line/failure.ts';
import { fileFault } from '../../command-line/file-faults.ts';
import { OutputFileError, writeOutput } from '../../command-line/output-file.ts';
import { note } from '../../command-line/terminal.ts';
import { bounded, plural } from '../../command-line/text.ts';
import { writeViolations } from '../../command-line/violations.ts';
import { encodeHex } from '../../formats/hex.ts';
import { systemClock } from '../../observe/clock.ts';
import { loadConfig } from '../config/load.ts';
import { InterchangeError } from '../slashing/interchange/error.ts';
import { readInterchange, writeInterchange } from '../slashing/interchange/file.ts';
import type { ValidatorHistory } from '../slashing/types.ts';
import { Web3SignerDatabaseError } from '../slashing/web3signer/schema.ts';
import { readSlashingArguments } from './slashing-arguments.ts';
import { SLASHING_COMMANDS, type SlashingCommand } from './slashing-descriptions.ts';
import { withStore } from './slashing-open.ts';
import type { OpenStore, SlashingTerminal } from './slashing-parts.ts';
import { jump, prune, reinstate, retire, status } from './slashing-store.ts';
import { importWeb3Signer } from './slashing-web3signer.ts';

/** Keys between two lines of progress. */
const PROGRESS_KEYS = 10_000;
const MAX_PATH_CHARACTERS = 200;

const COMMANDS: Readonly<Record<SlashingCommand, (open: OpenStore) => Promise<number>>> = {
  export: exportFile,
  import: (open) => (open.args.web3signer === undefined ? importFile(open) : importWeb3Signer(open)),
  jump,
  prune,
  reinstate,
  retire,
  status,
};

/** @returns the exit code */
export async function runSlashingCommand(argv: readonly string[], terminal: SlashingTerminal): Promise<number> {
  const [name = '', ...rest] = argv;
  const command = SLASHING_COMMANDS.find((one) => one === name);
  if (command === undefined) {
    sayNoCommand(terminal, 'strongroom slashing', name, SLASHING_COMMANDS);
    return EXIT.failed;
  }
  const args = readSlashingArguments(command, rest);
  if ('problem' in args) {
    sayWrongUsage(terminal, `strongroom slashing ${command}`, args.problem);
    return EXIT.failed;
  }
  const loaded = loadConfig(
    { ...terminal, argv: ['-c', args.config] },
    { compiledCeremony: false, withoutTokens: true },
  );
  if (!loaded.ok) {
    writeViolations(loaded.violations, terminal);
    return EXIT.configuration;
  }
  try {
    const use = { stderr: terminal.stderr, isForJump: command === 'jump' };
    return await withStore(loaded.config, use, ({ backend, network, logger }) =>
      COMMANDS[command]({ backend, network, clock: systemClock, terminal, args, logger }),
    );
  } catch (error) {
    return report(error, terminal);
  }
}

function report(error: unknown, terminal: SlashingTerminal): number {
  if (error instanceof InterchangeError) {
    sayFailure(terminal, 'strongroom', `the file is refused as a whole, nothing was merged: ${error.message}`);
    return EXIT.refused;
  }
  if (error instanceof Web3SignerDatabaseError) {
    const refusal = `the database is refused as a whole, nothing was merged: ${error.message}`;
    sayFailure(terminal, 'strongroom', refusal, [error.remedy]);
    return EXIT.refused;
  }
  const message = error instanceof Error ? error.message : String(error);
  sayFailure(terminal, 'strongroom', error instanceof OutputFileError ? withAdvice(error) : message);
  return EXIT.failed;
}

async function exportFile({ backend, network, terminal, args }: OpenStore): Promise<number> {
  let validators = 0;
  async function* counted(): AsyncGenerator<ValidatorHistory> {
    for await (const history of backend.exportHistories(args.publicKeys)) {
      validators += 1;
      if (validators % PROGRESS_KEYS === 0) note(terminal, `${validators} keys …`);
      yield history;
    }
  }
  const text = Readable.from(writeInterchange(counted(), encodeHex(network.genesisValidatorsRoot)));
  if (args.output === undefined) {
    await pipeline(text, terminal.stdout, { end: false });
  } else {
    await writeOutput(args.output, args.force, (file) => file.writeFile(text));
  }
  note(terminal, `exported the records of ${plural(validators, 'key')}`);
  return EXIT.ok;
}

async function importFile({ backend, network, terminal, args }: OpenStore): Promise<number> {
  const source = args.file === '-' || args.file === undefined ? terminal.stdin : bytesOf(args.file);
  let validators = 0;
  async function* counted(): AsyncGenerator<ValidatorHistory> {
    const genesisValidatorsRoot = encodeHex(network.genesisValidatorsRoot);
    for await (const history of readInterchange(source as AsyncIterable<Buffer>, genesisValidatorsRoot)) {
      validators += 1;
      if (validators % PROGRESS_KEYS === 0) note(terminal, `${validators} keys …`);
      yield history;
    }
  }
  const summary = await backend.importHistories(counted(), { strategy: args.strategy });
  terminal.stdout.write(
    `keys: ${summary.validators}\nblocks: ${summary.blocks}\nattestations: ${summary.attestations}\n` +
      `already present: ${summary.alreadyPresent}\nconflicts: ${summary.conflicts}\n`,
  );
  sayConflicts(terminal, 'the file', summary.conflicts, summary.conflicting);
  return summary.conflicts > 0 ? EXIT.conflicts : EXIT.ok;
}

async function* bytesOf(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path);
  } catch (error) {
    throw new Error(fileFault(bounded(path, MAX_PATH_CHARACTERS), 'read', error), { cause: error });
  }
}
