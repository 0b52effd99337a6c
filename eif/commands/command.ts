// What every command of `strongroom eif` is given and gives back. Data goes to stdout, everything else to stderr.

import type { Description } from '../../command-line/command.ts';
import { argumentsReader } from '../../command-line/read-command.ts';
import type { Printed } from '../../command-line/terminal.ts';
import { WrongUsage } from '../inputs.ts';

export interface Command {
  readonly description: Description;
  /** Exit code when the command line or a file cannot be used. Default: 1. */
  readonly troubleExitCode?: number;
  /** @returns the exit code @throws BuildError, ImageFormatError */
  run(argv: readonly string[], terminal: Printed): Promise<number>;
}

/** @throws WrongUsage for what the command line may not say */
export const readArguments = argumentsReader(
  ({ message, advice }) => new WrongUsage(message, advice === undefined ? [] : [advice]),
);

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Two columns. */
export function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => name.length));
  return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}
