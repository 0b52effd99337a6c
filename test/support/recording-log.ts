// A log that keeps its lines, for tests that say what the operator gets to see (and what never is there).

import type { Log } from '../../observe/log.ts';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export function recordingLog(): Log & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const record = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  return { lines, debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') };
}
