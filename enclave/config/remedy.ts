// What to do about a value that an option does not take: what the schema advises, else what was probably meant by the
// value's type. It looks at the value and repeats nothing of it.

import type { z } from 'zod';
import { suggest } from '../../command-line/violations.ts';
import { type OptionPath, optionAt } from './options.ts';

type Issue = z.core.$ZodIssue;

/** @param value of the option; the issue's path leads from it to what is refused. */
export function remedyFor(option: OptionPath, value: unknown, issue: Issue): string {
  if (issue.code === 'unrecognized_keys') return 'remove it; docs/reference/configuration.md lists the members';
  const advised = issue.code === 'custom' ? issue.params?.['remedy'] : undefined;
  if (typeof advised === 'string') return advised;
  const refused = valueAt(value, issue.path);
  if (refused === undefined && issue.path.length > 0) return 'write it: it has no default';
  return slipOf(refused, issue.message) ?? otherwise(option, issue.path);
}

/** A slip of YAML, of a flag or of a variable, seen from what was expected. */
function slipOf(refused: unknown, expected: string): string | undefined {
  const wantsList = expected.startsWith('must be a list');
  const wantsText = !/^must be (?:a list|an integer|a number|a whole number|an object|true or false)/.test(expected);
  if (wantsList && (typeof refused === 'string' || typeof refused === 'number')) return 'write a list: […]';
  if (wantsText && (typeof refused === 'number' || typeof refused === 'boolean')) {
    return 'quote it: as it stands it is a number or a boolean, not text';
  }
  if (typeof refused !== 'string') return undefined;
  if (/^must be (?:an integer|a number|a whole number)/.test(expected) && /^-?[0-9]+$/.test(refused)) {
    return 'correct it; in the file a number has no quotes';
  }
  if (expected.startsWith('must be true or false') && /^(?:true|false|yes|no|on|off)$/i.test(refused)) {
    return 'write true or false, without quotes';
  }
  const choices = /^must be one of (.+)$/.exec(expected)?.[1]?.split(', ');
  return choices === undefined ? undefined : suggest(refused.toLowerCase(), choices, 'write one of them');
}

/** Only a whole option can be left out: a member of one is needed where it stands. */
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
