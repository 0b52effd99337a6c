// `strongroom slashing …`: the slashing protection records of the configured backend, with the server stopped (sqlite)
// or running (the others). Data goes to stdout, everything else to stderr (specification/operating.md#exit-codes).

import { ArgumentsError, withAdvice } from '../../common/command-line/arguments.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { OutputFileError } from '../../common/command-line/output-file.ts';
import { type Failure, type Group, NoCommand, runProgram } from '../../common/command-line/program.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { InterchangeError } from '../../signer/slashing/interchange/piece-parser.ts';
import type { LoadInput } from '../config/load.ts';
import { Web3SignerDatabaseError } from '../web3signer/schema.ts';
import type { SlashingTerminal } from './slashing-command.ts';

const files = () => import('./slashing-files.ts');
const store = () => import('./slashing-store.ts');

export const SLASHING: Group<SlashingTerminal> = {
  summary: 'The slashing protection records of the configured backend, as EIP-3076 files',
  notes: [
    'With sqlite the server has to be stopped; postgres and dynamodb may be in use.',
    'With signer_state, export and reinstate need the store over which the fleet signs; the others warn of any other.',
  ],
  commands: {
    export: async () => (await files()).exportCommand,
    import: async () => (await files()).importCommand,
    jump: async () => (await store()).jump,
    'lower-floor': async () => (await store()).lowerFloor,
    prune: async () => (await store()).prune,
    reinstate: async () => (await store()).reinstate,
    retire: async () => (await store()).retire,
    status: async () => (await store()).storeStatus,
  },
  sections: [
    {
      heading: 'Exit codes',
      entries: [
        ['0', 'done'],
        ['1', 'wrong usage, or a store that cannot be used'],
        ['2', 'a file or a database that is refused as a whole (with the place)'],
        ['9', 'merged, and it holds slashable messages, which are named'],
        ['78', 'a configuration that cannot be used'],
      ],
    },
  ],
};

/** @param input also how the front of Web3Signer's command line gives a configuration that is no file */
export async function main(
  argv: readonly string[],
  input: Pick<LoadInput, 'env' | 'readFile'> = { env: process.env },
): Promise<void> {
  const { stdin, stdout, stderr } = process;
  process.exitCode = await runSlashingCommand(argv, { ...input, stdin, stdout, stderr });
}

export function runSlashingCommand(argv: readonly string[], terminal: SlashingTerminal): Promise<ExitCode> {
  return runProgram({ title: 'strongroom slashing', tree: SLASHING }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  if (error instanceof NoCommand) return undefined;
  if (error instanceof ArgumentsError) return { problem: withAdvice(error), isUsage: true };
  return { saidBy: 'strongroom', ...failureOf(error) };
}

const OTHER_NETWORK = 'correct `network` in the configuration, or import the file of its network';
const EXPORT_AGAIN = 'export it again from what signed with these keys, and compare the sizes after a copy';

/** Why a record was not imported; undefined for any other fault. */
export function importFailure(error: unknown): Failure | undefined {
  if (error instanceof InterchangeError) {
    const problem = `the file is refused as a whole, nothing was merged: ${error.message}`;
    const remedy = error.place === 'metadata.genesis_validators_root' ? OTHER_NETWORK : EXPORT_AGAIN;
    return { problem, remedies: [remedy], exitCode: EXIT.refused };
  }
  if (error instanceof Web3SignerDatabaseError) {
    const problem = `the database is refused as a whole, nothing was merged: ${error.message}`;
    return { problem, remedies: [error.remedy], exitCode: EXIT.refused };
  }
  if (error instanceof SignerError && error.reason === 'ahead_of_clock') {
    const remedies = ['compare the clocks and correct what is imported; --accept-future takes it as it is'];
    return { problem: error.message, remedies, exitCode: EXIT.refused };
  }
  return undefined;
}

function failureOf(error: unknown): Failure {
  if (error instanceof OutputFileError) return { problem: withAdvice(error) };
  return importFailure(error) ?? { problem: error instanceof Error ? error.message : String(error) };
}
