// A program at a terminal, as a person has it: `script` (bsdutils) gives it a pseudo-terminal of its own, and each
// answer is typed when its prompt stands there. What appears on the terminal is what the test gets.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tracked } from '../../rehearsal/signer.ts';

export interface Typed {
  readonly prompt: string;
  readonly answer: string;
}

/**
 * @param command for a shell
 * @param options.always typed each time that its prompt comes, however often
 */
export async function atTerminal(
  command: string,
  conversation: readonly Typed[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string; readonly always?: Typed } = {},
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const child = tracked(
    spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
      env: { ...process.env, ...options.env },
      cwd: options.cwd,
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  // A prompt may stand in the last words of a program, which has ended when the answer is typed.
  child.stdin.on('error', () => undefined);
  const open = [...conversation];
  let shown = '';
  let answered = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    const next = open[0] ?? options.always;
    const at = next === undefined ? -1 : shown.indexOf(next.prompt, answered);
    if (next === undefined || at === -1) return;
    answered = at + next.prompt.length;
    open.shift();
    child.stdin.write(`${next.answer}\n`);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  child.stdin.end();
  if (open[0] !== undefined) throw new Error(`never asked "${open[0].prompt}":\n${shown}`);
  return { code, shown };
}
