// The commands of `strongroom slashing`: what each says of itself, and its arguments, read strictly: what a command
// does not take is refused.

import { ArgumentsError, type FlagValue, withAdvice } from '../../command-line/arguments.ts';
import type { Description } from '../../command-line/command.ts';
import { readCommand } from '../../command-line/read-command.ts';
import { canonicalPublicKey } from '../../formats/hex.ts';
import type { MergeStrategy } from '../slashing/types.ts';
import { SLASHING_DESCRIPTIONS, type SlashingCommand } from './slashing-descriptions.ts';

export interface SlashingArguments {
  readonly config: string;
  readonly output: string | undefined;
  /** Whether `output` may be overwritten. */
  readonly force: boolean;
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

type Values = Readonly<Record<string, FlagValue>>;

export function readSlashingArguments(
  command: SlashingCommand,
  argv: readonly string[],
): SlashingArguments | { readonly problem: string } {
  try {
    const description: Description = SLASHING_DESCRIPTIONS[command];
    const { values, words } = readCommand(description, argv);
    return checked(command, values, words);
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    return { problem: withAdvice(error) };
  }
}

function checked(
  command: SlashingCommand,
  values: Values,
  words: readonly string[],
): SlashingArguments | { readonly problem: string } {
  const web3signer = text(values['from-web3signer']);
  if (command === 'import' && words.length !== (web3signer === undefined ? 1 : 0)) {
    return { problem: 'name one file to import, or - for stdin, or --from-web3signer and no file' };
  }
  const isByName = command === 'reinstate' || command === 'retire';
  const named = isByName ? words : text(values['pubkeys'])?.split(',');
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
    config: text(values['config']) ?? '',
    output: text(values['output']),
    force: values['force'] === true,
    publicKeys: publicKeys as string[] | undefined,
    file: command === 'import' ? words[0] : undefined,
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

function text(value: FlagValue): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Not a number when it is something else. */
function wholeNumber(value: FlagValue): number | undefined {
  if (typeof value !== 'string') return undefined;
  return /^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
}
