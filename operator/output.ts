// Data to stdout: a table for people, or exactly the bytes that the signer answered for programs.

import type { Answer } from './client.ts';
import type { Terminal } from './terminal.ts';

export const OUTPUT_FORMATS = ['table', 'json'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export interface Output {
  /** An answer, as a table by `render`, or as it came. */
  answer<T>(answer: Answer<T>, render: (value: T) => string): void;
}

export function createOutput(format: OutputFormat, { stdout }: Terminal): Output {
  return {
    answer: ({ value, text }, render) => void stdout.write(format === 'json' ? `${text.trimEnd()}\n` : render(value)),
  };
}
