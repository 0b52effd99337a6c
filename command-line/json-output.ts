// The flag of every command that prints a table for people or JSON for programs.

import type { Flags } from './command.ts';

/** How it was said before `--output` named a file everywhere. */
export const FORMER_OUTPUT = {
  output: { placeholder: 'FORMAT', choices: ['table', 'json'], formerly: 'json', meaning: 'table or json' },
} as const satisfies Flags;

export const JSON_OUTPUT = {
  json: { meaning: 'Print JSON, not a table' },
  ...FORMER_OUTPUT,
} as const satisfies Flags;
