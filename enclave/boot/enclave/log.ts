// The log of a signer in an enclave. Every line goes to the parent as JSON, through the ring. The console gets the
// lines of the start; in debug mode it gets all other lines, too, in the configured format. Outside debug mode nobody
// can read the console, and an emulated serial line is too slow for audit lines.

import { textLine } from '../../../observe/log-text.ts';
import {
  createLogger,
  type LogDestination,
  type Logger,
  type LoggerOptions,
  standardOutput,
} from '../../../observe/logger.ts';
import type { Transport } from '../../native/transport.ts';
import { LogRing } from '../../tee/parent/log-ring.ts';

/** For the parent to take the last lines: a start that fails has to say why. */
const END_TIMEOUT_MS = 3_000;

export interface EnclaveLog {
  /**
   * @param onConsole whether the console has its lines too
   * @throws RangeError when the level filter is not well formed
   */
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
        flush: () => {
          ring.flush();
          consoleLogger.flush();
        },
        end: async () => {
          // The console last: after its end, writes throw.
          await ring.end(END_TIMEOUT_MS);
          await consoleLogger.end();
        },
      };
    },
  };
}
