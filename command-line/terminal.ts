// The process as the commands see it.

/** The process as a command sees it whose data may be a file or a pipe of any kind. */
export interface Piped {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** The process as a command sees it that asks and shows: it looks whether a terminal is there. */
export interface Terminal extends Piped {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Data goes to stdout, everything else to stderr. */
export interface Printed {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** What is not data: notes, warnings, questions. Already fit for a terminal. */
export function note({ stderr }: Pick<Printed, 'stderr'>, text: string): void {
  stderr.write(`${text}\n`);
}
