// The arguments of `strongroom parent-proxy`. Unknown, repeated and incomplete flags are refused, all of them at once.

import type { Flag } from '../command-line/command.ts';
import { renderName, suggest, type Violation } from '../command-line/violations.ts';
import { FLAGS } from './description.ts';

export interface Arguments {
  readonly configPath: string | undefined;
  readonly check: boolean;
  readonly violations: readonly Violation[];
}

type Name = `--${keyof typeof FLAGS}`;

/** Long and short names, and what they mean. */
const SPELLINGS: ReadonlyMap<string, Name> = new Map(
  Object.entries<Flag>(FLAGS).flatMap(([name, { short }]) => {
    const flag = `--${name}` as Name;
    return [[flag, flag], ...(short === undefined ? [] : [[`-${short}`, flag] as const])] as const;
  }),
);

export function readArguments(argv: readonly string[]): Arguments {
  const violations: Violation[] = [];
  const seen = new Map<string, string | undefined>();
  const refuse = (path: string, problem: string, remedy: string): void =>
    void violations.push({ path, problem, remedy, origin: `flag ${path}` });

  for (let position = 0; position < argv.length; position++) {
    const [, written = '', joined] = /^([^=]*)(?:=(.*))?$/s.exec(argv[position] ?? '') ?? [];
    const flag = SPELLINGS.get(written);
    if (flag === undefined) {
      refuse(renderName(written), 'is not a flag of the parent proxy', suggest(written, SPELLINGS.keys(), 'remove it'));
      continue;
    }
    if (seen.has(flag)) refuse(flag, 'is given more than once', `give ${flag} once`);
    if (flag !== '--config') {
      if (joined !== undefined) refuse(flag, 'takes no value', `write ${flag} alone`);
      seen.set(flag, undefined);
      continue;
    }
    const next = argv[position + 1];
    const value = joined ?? (next?.startsWith('-') === true ? undefined : next);
    if (joined === undefined && value !== undefined) position += 1;
    if (value === undefined || value === '') refuse(flag, 'has no value', `write ${flag}=FILE`);
    seen.set(flag, value);
  }
  if (!seen.has('--config')) refuse('--config', 'is missing', 'name the configuration file: -c config.yaml');
  return { configPath: seen.get('--config'), check: seen.has('--check'), violations };
}
