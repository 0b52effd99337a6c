// How every program says that it did not do what it was asked: what happened, then what to do about it, a line each.

import { quoted } from './printable.ts';
import { note, type Printed } from './terminal.ts';
import { suggest } from './violations.ts';

type ErrorOutput = Pick<Printed, 'stderr'>;

export function sayFailure(
  output: ErrorOutput,
  title: string,
  problem: string,
  remedies: readonly string[] = [],
): void {
  const lines = remedies.flatMap((remedy) => remedy.split('\n')).map((line) => `  ${line}`);
  note(output, [`${title}: ${problem}`, ...lines].join('\n'));
}

export function sayNoCommand(output: ErrorOutput, title: string, written: string, known: readonly string[]): void {
  sayFailure(output, title, noCommand(written, known), [seeHelp(title)]);
}

export function noCommand(written: string, known: readonly string[]): string {
  return `there is no command ${quoted(written)}; ${suggest(written, known, `there are: ${known.join(', ')}`)}`;
}

export function seeHelp(command: string): string {
  return `see ${command} --help`;
}
