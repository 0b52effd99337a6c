// The arguments of a command, strictly: node:util parseArgs in strict mode has the last word; before it come our
// own words for its refusals, and what it lets pass (a flag given twice, an empty value, a value outside its
// choices). A mistyped flag is never ignored: a command that runs without what was asked of it may do the
// opposite. Every program of the tree reads its arguments here, but for the signer, whose flags are a layer of its
// configuration and are refused all at once, and Web3Signer's command line, which is read as Web3Signer reads it.

import { parseArgs } from 'node:util';
import { nearest } from './nearest.ts';
import { bounded } from './text.ts';

/** A flag with a placeholder takes a value; without one it is a switch. */
export interface FlagForm {
  readonly placeholder?: string;
  readonly required?: true;
  /** May be given several times; its value is a list. */
  readonly repeatable?: true;
  readonly choices?: readonly string[];
  /** One letter. */
  readonly short?: string;
  /** The value names a file to write. It may not be `json` or `table`: `--output` took these as formats once. */
  readonly isOutputFile?: true;
  /** The flag's name of today. The former name is still read, with a warning; help leaves it out. */
  readonly formerly?: string;
}

export type FlagForms = Readonly<Record<string, FlagForm>>;
export type FlagValue = string | boolean | readonly string[] | undefined;

export interface ReadArguments {
  /** Switches that are not given are false. */
  readonly values: Readonly<Record<string, FlagValue>>;
  readonly words: readonly string[];
  /** Flags that were given by a former name: what to say of them. Their values are under the names of today. */
  readonly warnings: readonly string[];
}

/** The command line says something that cannot be. */
export class ArgumentsError extends Error {
  /** What to do about it. */
  readonly advice: string | undefined;

  constructor(message: string, advice?: string) {
    super(message);
    this.name = 'ArgumentsError';
    this.advice = advice;
  }
}

/** On one line. */
export function withAdvice({ message, advice }: ArgumentsError): string {
  return advice === undefined ? message : `${message}; ${advice}`;
}

const MAX_QUOTED_CHARACTERS = 60;
const MAX_PROBLEM_CHARACTERS = 200;

/** @throws ArgumentsError */
export function readArguments(forms: FlagForms, argv: readonly string[]): ReadArguments {
  const options = Object.fromEntries(Object.entries(forms).map(([name, form]) => [name, optionOf(form)]));
  const config = { args: argv, options, allowPositionals: true } as const;
  checkFlags(forms, parseArgs({ ...config, args: [...argv], strict: false, tokens: true }).tokens);
  const { values: parsed, positionals } = parseStrictly(config);
  // A list only has texts: switches are not repeatable.
  const { values, warnings } = byPresentNames(forms, parsed as Readonly<Record<string, FlagValue>>);
  for (const [name, form] of Object.entries(forms)) checkValue(name, form, values[name]);
  const switches = Object.entries(forms).filter(([, form]) => form.placeholder === undefined);
  return {
    values: { ...Object.fromEntries(switches.map(([name]) => [name, false])), ...values },
    words: positionals,
    warnings,
  };
}

function byPresentNames(
  forms: FlagForms,
  given: Readonly<Record<string, FlagValue>>,
): Pick<ReadArguments, 'values' | 'warnings'> {
  const values = { ...given };
  const warnings: string[] = [];
  for (const [name, { formerly }] of Object.entries(forms)) {
    const value = given[name];
    if (formerly === undefined || value === undefined || value === false) continue;
    const isSwitch = forms[formerly]?.placeholder === undefined;
    const written = isSwitch ? `--${name} ${String(value)}` : `--${name}`;
    if (given[formerly] !== undefined)
      throw new ArgumentsError(`--${formerly} says what ${written} said before: give one of them`);
    // What has become a switch had its name as a value: `--output json`.
    values[formerly] = isSwitch ? value === formerly : value;
    warnings.push(`${written} is ${isSwitch ? SWITCH_NOW : `--${formerly} now`}; a later version will not know it`);
  }
  return { values, warnings };
}

const SWITCH_NOW = '--json now, and a table without it';

/** Whether the help is asked for, as a flag and not as the value of another one. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).some((argument) => argument === '--help' || argument === '-h');
}

/** What was written, as a message may repeat it. */
export function quoted(text: string): string {
  return bounded(text, MAX_QUOTED_CHARACTERS);
}

interface Token {
  readonly kind: string;
  readonly name?: string;
  readonly rawName?: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkFlags(forms: FlagForms, tokens: readonly Token[]): void {
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name = '', rawName = '' } = token;
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined;
    if (form === undefined) {
      const present = Object.entries(forms).filter(([, { formerly }]) => formerly === undefined);
      const near = nearest(
        name,
        present.map(([known]) => known),
      );
      throw new ArgumentsError(
        `there is no flag ${quoted(rawName)}`,
        near === undefined ? undefined : `did you mean --${near}?`,
      );
    }
    if (seen.has(name) && form.repeatable !== true) throw new ArgumentsError(`--${name} is given more than once`);
    seen.add(name);
    checkForm(name, form, token);
  }
}

/** A value that looks like a flag is a forgotten value, unless it is joined on by `=`; `-` alone is stdin. */
function checkForm(name: string, { placeholder }: FlagForm, { value, inlineValue }: Token): void {
  if (placeholder === undefined) {
    if (value !== undefined) throw new ArgumentsError(`--${name} takes no value`);
    return;
  }
  const forgotten = inlineValue !== true && value !== undefined && /^-./.test(value);
  if (value === undefined || value === '' || forgotten) {
    throw new ArgumentsError(`--${name} has no value`, `write --${name}=${placeholder}`);
  }
}

interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple: boolean;
  readonly short?: string;
}

function optionOf({ placeholder, repeatable, short }: FlagForm): Option {
  const type = placeholder === undefined ? 'boolean' : 'string';
  return { type, multiple: repeatable === true, ...(short === undefined ? {} : { short }) };
}

function parseStrictly(config: {
  readonly args: readonly string[];
  readonly options: Record<string, Option>;
  readonly allowPositionals: true;
}) {
  try {
    return parseArgs({ ...config, args: [...config.args], strict: true });
  } catch (error) {
    throw new ArgumentsError(bounded(error instanceof Error ? error.message : String(error), MAX_PROBLEM_CHARACTERS));
  }
}

function checkValue(name: string, form: FlagForm, value: FlagValue): void {
  if (value === undefined && form.required === true)
    throw new ArgumentsError(`--${name} ${form.placeholder} is needed`);
  if (form.isOutputFile === true && (value === 'json' || value === 'table')) {
    const advice = value === 'json' ? 'write --json for JSON, or' : 'leave it out for a table, or write';
    throw new ArgumentsError(`--${name} names a file now, not a format`, `${advice} --${name}=./${value} for a file`);
  }
  if (typeof value === 'string' && form.choices !== undefined && !form.choices.includes(value)) {
    throw new ArgumentsError(`--${name} is one of ${form.choices.join(', ')}, not ${quoted(value)}`);
  }
}
