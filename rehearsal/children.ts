// The processes that a test file has started: what it starts it ends, whatever fails. A helper that starts one gives it
// here at once, before anything can go wrong; test/support/end-what-was-started.ts ends what is left when the
// file is through.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

const children = new Set<ChildProcess>();

export function tracked<T extends ChildProcess>(child: T): T {
  children.add(child);
  child.once('exit', () => children.delete(child)).once('error', () => children.delete(child));
  return child;
}

export function runningChildren(): readonly ChildProcess[] {
  return [...children];
}

/** SIGKILL, and wait. */
export async function killChildren(): Promise<void> {
  await Promise.all(runningChildren().map(kill));
}

export async function kill(child: ChildProcess): Promise<void> {
  if (!children.has(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

// Leaving in another way: an exception that nobody caught.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
