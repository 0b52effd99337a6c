// The arguments of one command, strictly: node:util parseArgs in strict mode has the last word; before it come our own
// words for its refusals, and what it lets pass (a flag given twice, an empty value, a value outside its choices). A
// mistyped flag is never ignored: a command that runs without what was asked of it may do the opposite.

import { parseArgs } from 'node:util';
import { nearest } from '../command-line/nearest.ts';
import type { Argument, Command, Flag, Flags, FlagValue } from './command.ts';
import { UsageFailure } from './exit.ts';
import { bounded } from './text.ts';

const MAX_QUOTED_CHARACTERS = 60;
const MAX_PROBLEM_CHARACTERS = 200;

export interface ParsedArguments {
  readonly values: Readonly<Record<string, FlagValue>>;
  /** Empty when the command takes none. */
  readonly argument: string;
}

/**
 * @param flags those of the command and the common ones
 * @throws CommandFailure: wrong usage
 */
export function parseArguments(command: Command, flags: Flags, argv: readonly string[]): ParsedArguments {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, { type: typeOf(flag), multiple: flag.repeatable === true }]),
  );
  const config = { args: argv, options, allowPositionals: true } as const;
  checkFlags(flags, parseArgs({ ...config, args: [...argv], strict: false, tokens: true }).tokens);
  const { values: parsed, positionals } = parseStrictly(config);
  const values = parsed as Readonly<Record<string, FlagValue>>; // a list only has texts: switches are not repeatable
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

interface Token {
  readonly kind: string;
  readonly name?: string;
  readonly rawName?: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkFlags(flags: Flags, tokens: readonly Token[]): void {
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name = '', rawName = '' } = token;
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) {
      const near = nearest(name, Object.keys(flags));
      throw new UsageFailure(
        `there is no flag ${quote(rawName)}`,
        near === undefined ? undefined : `did you mean --${near}?`,
      );
    }
    if (seen.has(name) && flag.repeatable !== true) throw new UsageFailure(`--${name} is given more than once`);
    seen.add(name);
    checkForm(name, flag, token);
  }
}

/** A value that looks like a flag is a forgotten value, unless it is joined on by `=`; `-` alone is stdin. */
function checkForm(name: string, { placeholder }: Flag, { value, inlineValue }: Token): void {
  if (placeholder === undefined) {
    if (value !== undefined) throw new UsageFailure(`--${name} takes no value`);
    return;
  }
  const forgotten = inlineValue !== true && value !== undefined && /^-./.test(value);
  if (value === undefined || value === '' || forgotten) {
    throw new UsageFailure(`--${name} has no value`, `write --${name}=${placeholder}`);
  }
}

function parseStrictly(config: {
  readonly args: readonly string[];
  readonly options: Record<string, { readonly type: 'string' | 'boolean'; readonly multiple: boolean }>;
  readonly allowPositionals: true;
}) {
  try {
    return parseArgs({ ...config, args: [...config.args], strict: true });
  } catch (error) {
    throw new UsageFailure(bounded(error instanceof Error ? error.message : String(error), MAX_PROBLEM_CHARACTERS));
  }
}

function checkValue(name: string, flag: Flag, value: FlagValue): void {
  if (value === undefined && flag.required === true) throw new UsageFailure(`--${name} ${flag.placeholder} is needed`);
  if (typeof value === 'string' && flag.choices !== undefined && !flag.choices.includes(value)) {
    throw new UsageFailure(`--${name} is one of ${flag.choices.join(', ')}, not ${quote(value)}`);
  }
}

function checkArgument(argument: Argument | undefined, positionals: readonly string[]): string {
  const [given, ...more] = positionals;
  if (argument === undefined) {
    // Not repeated: it may be a token whose flag was forgotten.
    if (given !== undefined)
      throw new UsageFailure('this command takes flags only, and an argument without a flag is there');
    return '';
  }
  if (given === undefined || given === '') throw new UsageFailure(`${argument.name} is needed: ${argument.meaning}`);
  if (more.length > 0) throw new UsageFailure(`this command takes one ${argument.name}`);
  if (argument.choices !== undefined && !argument.choices.includes(given)) {
    throw new UsageFailure(`${argument.name} is one of ${argument.choices.join(', ')}, not ${quote(given)}`);
  }
  return given;
}

function typeOf(flag: Flag): 'string' | 'boolean' {
  return flag.placeholder === undefined ? 'boolean' : 'string';
}

function quote(text: string): string {
  return bounded(text, MAX_QUOTED_CHARACTERS);
}
