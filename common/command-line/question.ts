// A question at the terminal, and the line that a person types for it.

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Terminal } from './terminal.ts';

export function canAsk({ stdin, stderr }: Pick<Terminal, 'stdin' | 'stderr'>): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/** @param isSecret what is typed does not appear @returns undefined when the input ends */
export async function readLine(
  { stdin, stderr }: Pick<Terminal, 'stdin' | 'stderr'>,
  question: string,
  isSecret = false,
): Promise<string | undefined> {
  const unseen = new Writable({ write: (_text, _encoding, done) => done() });
  const lines = createInterface(
    isSecret ? { input: stdin, output: unseen, terminal: true } : { input: stdin, output: stderr },
  );
  if (isSecret) stderr.write(question); // now that the terminal shows nothing of what is typed
  try {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    lines.once('close', () => resolve(undefined));
    lines.question(isSecret ? '' : question, resolve);
    return await promise;
  } finally {
    lines.close();
    if (isSecret) stderr.write('\n');
  }
}
