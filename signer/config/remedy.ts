// What to do about a value that an option does not take. It repeats nothing of the value.

import type { z } from 'zod';
import { suggest } from '../../common/command-line/violations.ts';
import { type OptionPath, optionAt } from './options.ts';

type Issue = z.core.$ZodIssue;

export function remedyFor(option: OptionPath, value: unknown, issue: Issue): string {
  if (issue.code === 'unrecognized_keys') return 'remove it; docs/reference/configuration.md lists the members';
  const advised = issue.code === 'custom' ? issue.params?.['remedy'] : undefined;
  if (typeof advised === 'string') return advised;
  const refused = valueAt(value, issue.path);
  if (refused === undefined && issue.path.length > 0) return 'write it: it has no default';
  return slipOf(refused, issue) ?? otherwise(option, issue.path);
}

/** A slip of YAML, of a flag or of a variable. */
function slipOf(refused: unknown, issue: Issue): string | undefined {
  if (issue.code === 'invalid_value') {
    const choices = issue.values.map(String);
    return typeof refused === 'string'
      ? suggest(refused.toLowerCase(), choices, 'write one of them')
      : unquoted(refused);
  }
  if (issue.code !== 'invalid_type') return undefined;
  switch (issue.expected) {
    case 'array':
      return typeof refused === 'string' || typeof refused === 'number' ? 'write a list: […]' : undefined;
    case 'string':
      return unquoted(refused);
    case 'int':
    case 'number':
      return typeof refused === 'string' && /^-?[0-9]+$/.test(refused)
        ? 'correct it; in the file a number has no quotes'
        : undefined;
    case 'boolean':
      return typeof refused === 'string' && /^(?:true|false|yes|no|on|off)$/i.test(refused)
        ? 'write true or false, without quotes'
        : undefined;
    default:
      return undefined;
  }
}

function unquoted(refused: unknown): string | undefined {
  const isBare = typeof refused === 'number' || typeof refused === 'boolean';
  return isBare ? 'quote it: as it stands it is a number or a boolean, not text' : undefined;
}

/** Only a whole option can be left out. */
function otherwise(option: OptionPath, within: readonly PropertyKey[]): string {
  if (within.length > 0) return 'correct it';
  return optionAt(option).default === undefined
    ? 'correct it, or leave the option out'
    : 'correct it, or leave it at the default';
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, part)
        ? (inner as Record<PropertyKey, unknown>)[part]
        : undefined,
    value,
  );
}
