// The arguments of one command, strictly: node:util parseArgs in strict mode splits them, and what it lets pass (a flag
// given twice, an empty value, a value outside its choices) is refused here. A mistyped flag is never ignored: a command
// that runs without what was asked of it may do the opposite.

import { parseArgs } from 'node:util';
import type { Argument, Command, Flag, Flags } from './command.ts';
import { localFailure } from './exit.ts';
import { nearest } from './suggest.ts';
import { bounded } from './text.ts';

const MAX_QUOTED_CHARACTERS = 60;

export interface ParsedArguments {
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Empty when the command takes none. */
  readonly argument: string;
}

/**
 * @param flags those of the command and the common ones
 * @throws CommandFailure: wrong usage
 */
export function parseArguments(command: Command, flags: Flags, argv: readonly string[]): ParsedArguments {
  const options = Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { type: typeOf(flag) }]));
  const config = { args: argv, options, allowPositionals: true } as const;
  checkFlags(flags, parseArgs({ ...config, args: [...argv], strict: false, tokens: true }).tokens);
  const { values, positionals } = parseStrictly(config);
  for (const [name, flag] of Object.entries(flags)) checkValue(name, flag, values[name]);
  const switches = Object.entries(flags).filter(([, flag]) => flag.placeholder === undefined);
  return {
    values: { ...Object.fromEntries(switches.map(([name]) => [name, false])), ...values },
    argument: checkArgument(command.argument, positionals),
  };
}

/** Whether the help is asked for, as a flag and not as the value of another one. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).some((argument) => argument === '--help' || argument === '-h');
}

type Tokens = readonly { readonly kind: string; readonly name?: string; readonly rawName?: string }[];

function checkFlags(flags: Flags, tokens: Tokens): void {
  const seen = new Set<string>();
  for (const { kind, name = '', rawName = '' } of tokens) {
    if (kind !== 'option') continue;
    if (!Object.hasOwn(flags, name)) {
      const near = nearest(name, Object.keys(flags));
      const advice = near === undefined ? undefined : `did you mean --${near}?`;
      throw localFailure(`there is no flag ${quote(rawName)}`, advice);
    }
    if (seen.has(name)) throw localFailure(`--${name} is given more than once`);
    seen.add(name);
  }
}

function parseStrictly(config: {
  readonly args: readonly string[];
  readonly options: Record<string, { readonly type: 'string' | 'boolean' }>;
  readonly allowPositionals: true;
}) {
  try {
    return parseArgs({ ...config, args: [...config.args], strict: true });
  } catch (error) {
    // Its messages name the flag, not the value; the first sentence is what happened.
    const message = error instanceof Error ? error.message : String(error);
    throw localFailure(bounded(message.split(/[.\n]/)[0] ?? message, 200));
  }
}

function checkValue(name: string, flag: Flag, value: string | boolean | undefined): void {
  if (value === undefined && flag.required === true) throw localFailure(`--${name} ${flag.placeholder} is needed`);
  if (value === '') throw localFailure(`--${name} has no value`);
  if (typeof value === 'string' && flag.choices !== undefined && !flag.choices.includes(value)) {
    throw localFailure(`--${name} is one of ${flag.choices.join(', ')}, not ${quote(value)}`);
  }
}

function checkArgument(argument: Argument | undefined, positionals: readonly string[]): string {
  const [given, ...more] = positionals;
  if (argument === undefined) {
    // Not repeated: it may be a token whose flag was forgotten.
    if (given !== undefined)
      throw localFailure('this command takes flags only, and an argument without a flag is there');
    return '';
  }
  if (given === undefined || given === '') throw localFailure(`${argument.name} is needed: ${argument.meaning}`);
  if (more.length > 0) throw localFailure(`this command takes one ${argument.name}`);
  if (argument.choices !== undefined && !argument.choices.includes(given)) {
    throw localFailure(`${argument.name} is one of ${argument.choices.join(', ')}, not ${quote(given)}`);
  }
  return given;
}

function typeOf(flag: Flag): 'string' | 'boolean' {
  return flag.placeholder === undefined ? 'boolean' : 'string';
}

function quote(text: string): string {
  return bounded(text, MAX_QUOTED_CHARACTERS);
}
