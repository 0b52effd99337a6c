// The arguments of a command: node:util parseArgs in strict mode has the last word; before it come our own words, and
// what it lets pass (a flag given twice, an empty value, a value outside its choices). A mistyped flag is never
// ignored: a command without it may do the opposite.

import { parseArgs } from 'node:util';
import { nearest } from './nearest.ts';
import { quoted } from './printable.ts';
import { bounded } from './text.ts';

/** A flag with a placeholder takes a value; without one it is a switch. */
export interface FlagForm {
  readonly placeholder?: string;
  readonly required?: true;
  readonly repeatable?: true;
  readonly choices?: readonly string[];
  readonly short?: string;
  readonly isOutputFile?: true;
}

type FlagForms = Readonly<Record<string, FlagForm>>;
export type FlagValue = string | boolean | readonly string[] | undefined;

interface ReadArguments {
  readonly values: Readonly<Record<string, FlagValue>>;
  readonly words: readonly string[];
}

export class ArgumentsError extends Error {
  readonly advice: string | undefined;

  constructor(message: string, advice?: string) {
    super(message);
    this.name = 'ArgumentsError';
    this.advice = advice;
  }
}

export function withAdvice({ message, advice }: ArgumentsError): string {
  return advice === undefined ? message : `${message}; ${advice}`;
}

const MAX_PROBLEM_CHARACTERS = 200;

export function readArguments(forms: FlagForms, argv: readonly string[]): ReadArguments {
  const options = Object.fromEntries(Object.entries(forms).map(([name, form]) => [name, optionOf(form)]));
  const config = { args: argv, options, allowPositionals: true } as const;
  checkFlags(forms, parseArgs({ ...config, args: [...argv], strict: false, tokens: true }).tokens);
  const { values: parsed, positionals } = parseStrictly(config);
  const values = parsed as Readonly<Record<string, FlagValue>>;
  for (const [name, form] of Object.entries(forms)) checkValue(name, form, values[name]);
  const switches = Object.entries(forms).filter(([, form]) => form.placeholder === undefined);
  return {
    values: { ...Object.fromEntries(switches.map(([name]) => [name, false])), ...values },
    words: positionals,
  };
}

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

function checkFlags(forms: FlagForms, tokens: readonly Token[]): void {
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name = '', rawName = '' } = token;
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined;
    if (form === undefined) {
      const near = nearest(name, Object.keys(forms));
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
  const { choices } = form;
  const unknown = choices && [value].flat().find((one) => typeof one === 'string' && !choices.includes(one));
  if (unknown !== undefined)
    throw new ArgumentsError(`--${name} is one of ${choices?.join(', ')}, not ${quoted(String(unknown))}`);
}
