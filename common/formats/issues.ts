// What is said of a value that a schema refuses, wherever a person reads it: in our words, never in those of Zod, and
// never with the value, which may be a secret in the wrong place.

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

export function explainIssue(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined && issue.code !== 'unrecognized_keys') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[issue.expected] ?? `must be of type ${issue.expected}`;
    case 'too_small':
      return atLeast(issue.origin, Number(issue.minimum));
    case 'too_big':
      return atMost(issue.origin, Number(issue.maximum));
    case 'invalid_value': {
      const values = issue.values.map(String).join(', ');
      return issue.values.length === 1 ? `must be ${values}` : `must be one of ${values}`;
    }
    case 'invalid_format':
      return issue.format === 'datetime'
        ? 'must be a time, such as 2026-01-31T12:00:00Z'
        : 'has another form than it must have';
    case 'invalid_union':
      return 'has none of the forms that are known';
    case 'invalid_key':
      return 'has a name that is not allowed';
    case 'invalid_element':
      return 'has an item that is not allowed';
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `has members that do not exist: ${issue.keys.map((key) => JSON.stringify(key.slice(0, 40))).join(', ')}`;
    default: // a rule of a schema that has no words of its own
      return 'is not allowed';
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
