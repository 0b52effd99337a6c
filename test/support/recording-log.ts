// A log that keeps its lines, for tests that say what the operator gets to see (and what never is there).

import { strict as assert } from 'node:assert';
import type { Log } from '../../common/observe/log.ts';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export function recordingLog(): Log & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const record = (level: LogLine['level']) => (fields: object, message: string) => {
    assert.deepEqual(otherNames(fields), [], `members of a log line are snake_case: ${message}`);
    lines.push({ level, fields: { ...fields }, message });
  };
  return { lines, debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') };
}

/** The compiler looks at the members that are written out; what is spread into a line is looked at here. */
function otherNames(fields: object): string[] {
  return Object.entries(fields).flatMap(([name, value]) => [
    ...(/^[a-z][a-z0-9_]*$/.test(name) ? [] : [name]),
    ...(isPlain(value) ? otherNames(value) : []),
  ]);
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
