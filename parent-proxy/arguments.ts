// The arguments of `strongroom parent-proxy`. What is wrong with them is told as a violation, like what is wrong with
// the file that they name.

import { ArgumentsError, readArguments as readFlags } from '../command-line/arguments.ts';
import type { Flags } from '../command-line/command.ts';
import { renderName, suggest, type Violation } from '../command-line/violations.ts';
import { FLAGS } from './description.ts';

export interface Arguments {
  readonly configPath: string | undefined;
  readonly check: boolean;
  readonly violations: readonly Violation[];
}

const ORIGIN = 'the command line';
/** A missing file is told below, with what to do. */
const { required: _told, ...CONFIG } = FLAGS.config;
const FORMS: Flags = { ...FLAGS, config: CONFIG };

export function readArguments(argv: readonly string[]): Arguments {
  try {
    const { values, words } = readFlags(FORMS, argv);
    const { config, check } = values;
    const violations = words.map(notAFlag);
    if (typeof config !== 'string') violations.push(MISSING);
    return { configPath: typeof config === 'string' ? config : undefined, check: check === true, violations };
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    return { configPath: undefined, check: false, violations: [refusal(error)] };
  }
}

const MISSING: Violation = {
  path: '--config',
  problem: 'is missing',
  remedy: 'name the configuration file: -c config.yaml',
  origin: ORIGIN,
};

function notAFlag(word: string): Violation {
  const flags = Object.keys(FORMS).map((name) => `--${name}`);
  const remedy = suggest(word, flags, 'remove it');
  return { path: renderName(word), problem: 'is not a flag of the parent proxy', remedy, origin: ORIGIN };
}

/** `--config has no value`: the subject of the sentence, and the rest. */
function refusal({ message, advice = 'see strongroom parent-proxy --help' }: ArgumentsError): Violation {
  const [, path = '', problem = ''] = /^(\S+) (.*)$/s.exec(message) ?? [];
  return { path, problem, remedy: advice, origin: ORIGIN };
}
