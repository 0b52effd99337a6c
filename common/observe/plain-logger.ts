// The log of a program that needs no levels and no text for people: one JSON object a line, byte for byte as logger.ts
// writes it. Without pino, which would be a ninth of the parent proxy's bundle
// (docs/decisions/0009-two-log-writers.md).

import type { Clock } from './clock.ts';
import type { LogFields, ModuleLogs } from './log.ts';
import { redacted } from './redaction.ts';

export function createPlainLogger<Module extends string>(
  output: { write(line: string): unknown },
  clock: Pick<Clock, 'now'>,
): ModuleLogs<Module> {
  const writer = (level: string, module: Module) => (fields: LogFields, msg: string) => {
    const time = new Date(clock.now()).toISOString();
    output.write(`${JSON.stringify({ level, time, module, ...redacted(fields), msg })}\n`);
  };
  return {
    module: (name) => ({
      debug: writer('debug', name),
      info: writer('info', name),
      warn: writer('warn', name),
      error: writer('error', name),
    }),
  };
}
