// Every line goes to the parent as JSON, through the ring; the console gets those of the start, and all in debug mode.

import { textLine } from '../../common/observe/log-text.ts';
import {
  createLogger,
  type LogDestination,
  type Logger,
  type LoggerOptions,
  standardOutput,
} from '../../common/observe/logger.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { LogRing } from './log-ring.ts';

/** A start that fails has to say why. */
const END_TIMEOUT_MS = 3_000;

interface EnclaveLog {
  /** @param onConsole whether the console has its lines too */
  logger(options: LoggerOptions, onConsole?: boolean): Logger;
}

export function openEnclaveLog(parent: Transport, console: LogDestination = standardOutput()): EnclaveLog {
  const ring = new LogRing(parent);
  const consoleLogger = createLogger({ level: 'off', format: 'json' }, console); // flushes and ends the console
  return {
    logger(options, onConsole = true) {
      const consoleLine = options.format === 'json' ? (line: string) => line : (line: string) => textLine(line, false);
      const both = {
        write: (line: string): void => {
          ring.write(line);
          if (onConsole) console.write(consoleLine(line));
        },
      };
      const { module } = createLogger({ ...options, format: 'json' }, both);
      return {
        module,
        droppedLines: () => ring.droppedLines(),
        isLosing: () => ring.isLosing(),
        confirmed: async () => false, // what the parent keeps cannot be known
        flush: () => {
          ring.flush();
          consoleLogger.flush();
        },
        end: async () => {
          await ring.end(END_TIMEOUT_MS);
          await consoleLogger.end();
        },
      };
    },
  };
}
