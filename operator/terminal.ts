// The process as the commands see it.

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** What is not data: notes, warnings, questions. Already fit for a terminal. */
export function note({ stderr }: Pick<Terminal, 'stderr'>, text: string): void {
  stderr.write(`${text}\n`);
}
