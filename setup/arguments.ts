// The values of flags as the commands use them.

import type { FlagValue } from '../command-line/arguments.ts';
import { PHASES, type Phase } from './policy-document.ts';

/** The values of a flag that may be repeated. */
export function strings(value: FlagValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: FlagValue): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The reader of arguments has looked at the choices. */
export function phaseOf(value: FlagValue): Phase {
  return PHASES.find((phase) => phase === value) ?? 'running';
}
