// The arguments of `strongroom slashing …`, read strictly: what a command does not take is refused.

import { type ParseArgsConfig, parseArgs } from 'node:util';
import { canonicalPublicKey } from '../../formats/hex.ts';
import type { MergeStrategy } from '../slashing/types.ts';

export const SLASHING_COMMANDS = ['export', 'import', 'jump', 'prune', 'reinstate', 'retire', 'status'] as const;
export type SlashingCommand = (typeof SLASHING_COMMANDS)[number];

export interface SlashingArguments {
  readonly config: string;
  readonly output: string | undefined;
  /** Canonical. */
  readonly publicKeys: readonly string[] | undefined;
  /** The file to import; `-` is standard input. */
  readonly file: string | undefined;
  /** Where Web3Signer's database is, as it was written: a URL, or a reference to one. */
  readonly web3signer: string | undefined;
  readonly strategy: MergeStrategy;
  readonly dryRun: boolean;
  /** What a jump by hand takes for the present; undefined: the clock decides. */
  readonly slot: number | undefined;
  readonly epoch: number | undefined;
}

type Options = NonNullable<ParseArgsConfig['options']>;
type Values = Readonly<Record<string, string | boolean | undefined>>;

const OPTIONS: Readonly<Record<SlashingCommand, Options>> = {
  export: { output: { type: 'string' }, pubkeys: { type: 'string' } },
  import: { 'as-minimal': { type: 'boolean' }, complete: { type: 'boolean' }, 'from-web3signer': { type: 'string' } },
  jump: { 'dry-run': { type: 'boolean' }, slot: { type: 'string' }, epoch: { type: 'string' } },
  prune: {},
  reinstate: {},
  retire: {},
  status: {},
};
const TAKES_PLACES: readonly SlashingCommand[] = ['import', 'reinstate', 'retire'];

export function readSlashingArguments(
  command: SlashingCommand,
  argv: readonly string[],
): SlashingArguments | { readonly problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: TAKES_PLACES.includes(command),
      options: { config: { type: 'string', short: 'c' }, ...OPTIONS[command] },
    });
    return checked(command, values as Values, positionals);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function checked(
  command: SlashingCommand,
  values: Values,
  positionals: readonly string[],
): SlashingArguments | { readonly problem: string } {
  const config = text(values['config']);
  if (config === undefined) return { problem: 'name the configuration file with -c' };
  const web3signer = text(values['from-web3signer']);
  if (command === 'import' && positionals.length !== (web3signer === undefined ? 1 : 0)) {
    return { problem: 'name one file to import, or - for stdin, or --from-web3signer and no file' };
  }
  const isByName = command === 'reinstate' || command === 'retire';
  if (isByName && positionals.length === 0) return { problem: 'name at least one public key' };
  const named = isByName ? positionals : text(values['pubkeys'])?.split(',');
  const publicKeys = named?.map((key) => canonicalPublicKey(key.trim()));
  const malformed = named?.find((_, index) => publicKeys?.[index] === undefined);
  if (malformed !== undefined) return { problem: `${JSON.stringify(malformed)}: a public key is 48 bytes of hex` };
  if (values['as-minimal'] === true && values['complete'] === true) {
    return { problem: '--as-minimal and --complete contradict each other' };
  }
  const [slot, epoch] = [wholeNumber(values['slot']), wholeNumber(values['epoch'])];
  if (Number.isNaN(slot) || Number.isNaN(epoch)) return { problem: '--slot and --epoch are whole numbers' };
  if ((slot === undefined) !== (epoch === undefined)) return { problem: '--slot and --epoch are given together' };
  return {
    config,
    output: text(values['output']),
    publicKeys: publicKeys as string[] | undefined,
    file: command === 'import' ? positionals[0] : undefined,
    web3signer,
    strategy: strategyOf(values),
    dryRun: values['dry-run'] === true,
    slot,
    epoch,
  };
}

/** A database is merged as minimal unless told: a second run then changes nothing, and nothing in between is signed. */
function strategyOf(values: Values): MergeStrategy {
  if (values['complete'] === true) return 'complete';
  return values['as-minimal'] === true || values['from-web3signer'] !== undefined ? 'minimal' : 'by_key';
}

function text(value: string | boolean | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Not a number when it is something else. */
function wholeNumber(value: string | boolean | undefined): number | undefined {
  if (typeof value !== 'string') return undefined;
  return /^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
}
