// What is wrong with the arguments is told as a violation, like what is wrong with the file.

import { ArgumentsError, readArguments as readFlags } from '../common/command-line/arguments.ts';
import type { Flags } from '../common/command-line/command.ts';
import { seeHelp } from '../common/command-line/failure.ts';
import { renderName, suggest, type Violation } from '../common/command-line/violations.ts';

export const TITLE = 'strongroom parent-proxy';

export const FLAGS = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: 'Configuration file, YAML' },
  check: {
    meaning:
      'Check what the parent proxy reads, print PCR16 for this file, and exit: 0 when it is good, 78 when it is not',
  },
  help: { short: 'h', meaning: 'Print this text and exit' },
} as const;

interface Arguments {
  readonly configPath: string | undefined;
  readonly check: boolean;
  readonly violations: readonly Violation[];
}

const ORIGIN = 'the command line';
const { required: _told, ...CONFIG } = FLAGS.config;
const FORMS: Flags = { ...FLAGS, config: CONFIG };

export function readProxyArguments(argv: readonly string[]): Arguments {
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

function refusal({ message, advice = seeHelp(TITLE) }: ArgumentsError): Violation {
  const [, path = '', problem = ''] = /^(\S+) (.*)$/s.exec(message) ?? [];
  return { path, problem, remedy: advice, origin: ORIGIN };
}
