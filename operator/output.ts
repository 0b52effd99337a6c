// Data to stdout: a table for people, or the signer's answer for programs, exactly as it came. Only on a terminal its
// control characters are escaped.

import { type Paint, painter } from '../common/command-line/paint.ts';
import { printableJson } from '../common/command-line/printable.ts';
import type { Terminal } from '../common/command-line/terminal.ts';
import { columnsOf } from '../common/command-line/wrap.ts';
import type { SignerAnswer } from './client.ts';

const OUTPUT_FORMATS = ['table', 'json'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export interface AnswerOutput {
  /** An answer as it came, or as a table by `render`: it is told how wide lines may be, and colours a verdict. */
  answer<T>(answer: SignerAnswer<T>, render: (value: T, columns: number, paint: Paint) => string): void;
}

export function createOutput(format: OutputFormat, { stdout, env }: Terminal): AnswerOutput {
  const renderJson = (text: string): string => `${stdout.isTTY ? printableJson(text.trimEnd()) : text.trimEnd()}\n`;
  return {
    answer: ({ value, text }, render) =>
      void stdout.write(format === 'json' ? renderJson(text) : render(value, columnsOf(stdout), painter(stdout, env))),
  };
}
