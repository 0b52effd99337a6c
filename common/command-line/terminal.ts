// The process as the commands see it.

import { boundOf, type Shown, wrapFor } from './wrap.ts';

export interface Piped {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export interface Terminal extends Piped {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Data goes to stdout, everything else to stderr. */
export interface Printed {
  readonly stdout: Shown & { write(text: string): unknown };
  readonly stderr: Shown & { write(text: string): unknown };
}

/**
 * Notes, warnings, questions, failures, already fit for a terminal.
 * @param copied what ends the text and is copied: where the line has no room for it, it has one to itself
 */
export function note({ stderr }: Pick<Printed, 'stderr'>, text: string, copied?: string): void {
  const line = copied === undefined ? text : `${text} ${copied}`;
  const isApart = copied !== undefined && line.length > boundOf(stderr);
  stderr.write(`${(isApart ? [...wrapFor(stderr, text), copied] : wrapFor(stderr, line)).join('\n')}\n`);
}
