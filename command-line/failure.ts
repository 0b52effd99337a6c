// How every program says that it did not do what it was asked: what happened, then what to do about it, a line each.

import { quoted } from './arguments.ts';
import { note, type Printed } from './terminal.ts';
import { suggest } from './violations.ts';

type Said = Pick<Printed, 'stderr'>;

/** @param title the program, as it is called */
export function sayFailure(said: Said, title: string, problem: string, remedies: readonly string[] = []): void {
  const lines = remedies.flatMap((remedy) => remedy.split('\n')).map((line) => `  ${line}`);
  note(said, [`${title}: ${problem}`, ...lines].join('\n'));
}

/** The words of the command line that are wrong are refused with where it is said which are right. */
export function sayWrongUsage(said: Said, title: string, problem: string, remedies: readonly string[] = []): void {
  sayFailure(said, title, problem, [...remedies, `see ${title} --help`]);
}

/** @param known the commands that there are */
export function sayNoCommand(said: Said, title: string, written: string, known: readonly string[]): void {
  const advice = suggest(written, known, `there are: ${known.join(', ')}`);
  sayWrongUsage(said, title, `there is no command ${quoted(written)}; ${advice}`);
}
