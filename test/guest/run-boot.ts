// One guest from its first line to its results.

import { bootGuest, type GuestEnd } from './boot-guest.ts';
import { readResults } from './results.ts';
import type { GuestBoot, Tally } from './suite.ts';

export interface RunOptions {
  readonly kernel: string;
  readonly console: string;
  readonly show: (line: string) => void;
  readonly onLine?: (line: string) => void;
}

export async function runBoot(boot: GuestBoot, options: RunOptions): Promise<{ tally: Tally; end: GuestEnd }> {
  const { kernel, console, show, onLine } = options;
  const results = readResults(show, boot);
  const end = await bootGuest({
    ...boot,
    kernel,
    console,
    onLine(line) {
      onLine?.(line);
      results.line(line);
    },
  });
  results.ended(end);
  return { tally: results.tally, end };
}
