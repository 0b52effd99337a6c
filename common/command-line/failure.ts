// How every program says that it did not do what it was asked: what happened, then what to do about it, a line each.

import { quoted } from './printable.ts';
import { note, type Printed } from './terminal.ts';
import { suggest } from './violations.ts';

type Said = Pick<Printed, 'stderr'>;

export function sayFailure(said: Said, title: string, problem: string, remedies: readonly string[] = []): void {
  const lines = remedies.flatMap((remedy) => remedy.split('\n')).map((line) => `  ${line}`);
  note(said, [`${title}: ${problem}`, ...lines].join('\n'));
}

export function sayNoCommand(said: Said, title: string, written: string, known: readonly string[]): void {
  sayFailure(said, title, noCommand(written, known), [seeHelp(title)]);
}

export function noCommand(written: string, known: readonly string[]): string {
  return `there is no command ${quoted(written)}; ${suggest(written, known, `there are: ${known.join(', ')}`)}`;
}

export function seeHelp(command: string): string {
  return `see ${command} --help`;
}
