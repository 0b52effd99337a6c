// What is said of a value that a schema refuses: never the value, which may be a secret in the wrong place.

import type { z } from 'zod';

const TYPES: Readonly<Record<string, string>> = {
  string: 'must be text',
  int: 'must be a whole number',
  number: 'must be a whole number', // as all of ours are
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
  record: 'must be an object',
};

export function explainIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined && issue.code !== 'unrecognized_keys') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[issue.expected] ?? `must be of type ${issue.expected}`;
    case 'too_small':
      return atLeast(issue.origin, Number(issue.minimum));
    case 'too_big':
      return atMost(issue.origin, Number(issue.maximum));
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return `has members that do not exist: ${issue.keys.map((key) => JSON.stringify(key.slice(0, 40))).join(', ')}`;
    default:
      return undefined;
  }
}

function atLeast(origin: string, minimum: number): string {
  if (origin === 'string') return minimum === 1 ? 'must not be empty' : `must be at least ${minimum} characters`;
  if (origin === 'array') return minimum === 1 ? 'must not be empty' : `must have at least ${minimum} items`;
  return `must be at least ${minimum}`;
}

function atMost(origin: string, maximum: number): string {
  if (origin === 'string') return `must be at most ${maximum} characters`;
  if (origin === 'array') return `must have at most ${maximum} items`;
  return `must be at most ${maximum}`;
}
