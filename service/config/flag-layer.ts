// The flag layer: the arguments of `strongroom server`. node:util parseArgs splits them; the strictness is ours, over
// its tokens, because its strict mode stops at the first mistake and every mistake is to be reported. Refused: unknown
// flags, repeated single flags, flags without their value, stray arguments.

import { parseArgs } from 'node:util';
import type { Flag } from '../../common/command-line/command.ts';
import { renderName, suggest, type Violation } from '../../common/command-line/violations.ts';
import type { Layer, Setting } from '../../signer/config/layers/layer.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';
import { readOptionText } from './members.ts';
import { flagOf } from './option-names.ts';
import { SERVER_FLAGS } from './server-flags.ts';

export interface FlagLayer extends Layer {
  readonly configPath: string | undefined;
  readonly check: boolean;
  readonly offline: boolean;
  readonly decrypt: boolean;
  readonly allowUnsafeNoopAntiSlashing: boolean;
}

const PATH_OF_FLAG: ReadonlyMap<string, OptionPath> = new Map(
  OPTION_PATHS.flatMap((path) => {
    const flag = flagOf(path);
    return flag === undefined ? [] : [[flag, path] as const];
  }),
);

const OWN_FLAGS: ReadonlyMap<string, Flag> = new Map(
  Object.entries(SERVER_FLAGS).map(([name, flag]) => [`--${name}`, flag]),
);

interface Written {
  readonly flag: string;
  readonly value: string | undefined;
}

export function readFlags(argv: readonly string[]): FlagLayer {
  const violations: Violation[] = [];
  const written = readArguments(argv, violations);
  const byFlag = Map.groupBy(written, ({ flag }) => flag);
  const settings = new Map<OptionPath, Setting>();
  for (const [flag, uses] of byFlag) {
    const path = PATH_OF_FLAG.get(flag);
    const repeatable = path !== undefined && optionAt(path).kind.form === 'repeated';
    const problem = problemOf(flag, uses, repeatable);
    if (problem !== undefined) violations.push({ ...problem, path: path ?? flag, origin: `flag ${flag}` });
    else if (path !== undefined) settings.set(path, settingOf(path, flag, uses));
  }
  if (byFlag.has('--offline') && !byFlag.has('--check')) violations.push(OFFLINE_ALONE);
  if (byFlag.has('--decrypt') && !byFlag.has('--check')) violations.push(DECRYPT_ALONE);
  return {
    settings,
    sections: new Map(),
    violations,
    configPath: byFlag.get('--config')?.[0]?.value,
    check: byFlag.has('--check'),
    offline: byFlag.has('--offline'),
    decrypt: byFlag.has('--decrypt'),
    allowUnsafeNoopAntiSlashing: byFlag.has('--allow-unsafe-noop-anti-slashing'),
  };
}

const OFFLINE_ALONE: Violation = {
  path: '--offline',
  problem: 'is given without --check, and no signer runs without its store',
  remedy: 'add --check, or remove it',
  origin: 'flag --offline',
};

const DECRYPT_ALONE: Violation = {
  path: '--decrypt',
  problem: 'is given without --check, and a start opens every keystore anyhow',
  remedy: 'add --check, or remove it',
  origin: 'flag --decrypt',
};

function readArguments(argv: readonly string[], violations: Violation[]): Written[] {
  const written: Written[] = [];
  const tokens = tokenise(argv);
  for (let position = 0; position < tokens.length; position++) {
    const token = tokens[position];
    const next = tokens[position + 1];
    if (token?.kind === 'option') {
      const flag = token.name.length === 1 ? token.rawName : `--${token.name}`;
      if (!isKnown(flag)) {
        violations.push(unknownFlag(flag));
        // What follows an unknown flag is most likely its value: one mistake, one violation.
        if (token.value === undefined && next?.kind === 'positional') position++;
      } else if (formOf(flag) === 'boolean' && token.value === undefined && isBooleanAfter(token.index, next)) {
        written.push({ flag, value: next.value });
        position++;
      } else {
        // A value that looks like a flag is a forgotten value, unless it is joined on by `=`.
        const forgotten = token.value?.startsWith('-') === true && token.inlineValue === false;
        written.push({ flag, value: forgotten ? undefined : token.value });
      }
    } else if (token?.kind === 'positional') {
      const remedy = 'remove it: the server takes flags only';
      violations.push({ path: 'an argument', problem: 'is not a flag', remedy, origin: `argument ${token.index + 1}` });
    }
  }
  return written;
}

function tokenise(argv: readonly string[]) {
  const options: Record<string, { type: 'string' | 'boolean'; short?: string; multiple: true }> = {};
  for (const flag of [...PATH_OF_FLAG.keys(), ...OWN_FLAGS.keys()]) {
    const type = formOf(flag) === 'boolean' || formOf(flag) === 'switch' ? 'boolean' : 'string';
    options[flag.slice(2)] = { type, multiple: true };
  }
  options['config'] = { type: 'string', short: 'c', multiple: true };
  options['help'] = { type: 'boolean', short: 'h', multiple: true };
  return parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

function problemOf(
  flag: string,
  uses: readonly Written[],
  repeatable: boolean,
): { readonly problem: string; readonly remedy: string } | undefined {
  if (uses.length > 1 && !repeatable) return { problem: 'is given more than once', remedy: `give ${flag} once` };
  const form = formOf(flag);
  if (form === 'switch' && uses.some(({ value }) => value !== undefined)) {
    return { problem: 'takes no value', remedy: `write ${flag} alone` };
  }
  if (form !== 'switch' && form !== 'boolean' && uses.some(({ value }) => value === undefined)) {
    return { problem: 'has a flag without its value', remedy: `write ${flag}=VALUE` };
  }
  return undefined;
}

function settingOf(path: OptionPath, flag: string, uses: readonly Written[]): Setting {
  const origin = `flag ${flag}`;
  const originAt = (): string => origin;
  if (formOf(flag) === 'repeated') return { value: uses.map(({ value }) => value), originAt };
  // A boolean flag without a value says true.
  return { value: readOptionText(path, uses[0]?.value ?? 'true')?.value, originAt };
}

function isKnown(flag: string): boolean {
  return PATH_OF_FLAG.has(flag) || OWN_FLAGS.has(flag);
}

function formOf(flag: string): string {
  const path = PATH_OF_FLAG.get(flag);
  if (path !== undefined) return optionAt(path).kind.form;
  return OWN_FLAGS.get(flag)?.placeholder === undefined ? 'switch' : 'text';
}

function unknownFlag(flag: string): Violation {
  const known = [...PATH_OF_FLAG.keys(), ...OWN_FLAGS.keys()];
  const shown = renderName(flag);
  const remedy = suggest(flag, known, 'remove it; `strongroom server --help` lists the flags');
  return { path: shown, problem: 'is not a flag of the server', remedy, origin: `flag ${shown}` };
}

type Token = ReturnType<typeof tokenise>[number];

/** `--flag false`, as two arguments. */
function isBooleanAfter(index: number, next: Token | undefined): next is Extract<Token, { kind: 'positional' }> {
  return next?.kind === 'positional' && next.index === index + 1 && (next.value === 'true' || next.value === 'false');
}
