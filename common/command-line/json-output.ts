// The flag of every command that prints a table for people or JSON for programs.

import type { Flags } from './command.ts';

export const JSON_OUTPUT = { json: { meaning: 'Print JSON, not a table' } } as const satisfies Flags;
