// The operator program in this process, with the authority of the emulator as the provider of documents: all but the
// provider is what the command line runs. There is no other way to hand it another provider.

import { Readable, Writable } from 'node:stream';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { runOperator } from '../../operator/main.ts';

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly rootFingerprint: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly onStderr?: (text: string) => void;
  readonly stdin?: Buffer;
  readonly columns?: number;
}

export async function runWithRoot(argv: readonly string[], options: RunOptions): Promise<Outcome> {
  const [stdout, stderr] = [collector(), collector(options.onStderr)];
  const { columns } = options;
  const terminal = {
    // Nobody's profile.
    env: { XDG_CONFIG_HOME: '/nonexistent', ...options.env },
    stdin: Readable.from(options.stdin === undefined ? [] : [options.stdin]),
    stdout: Object.assign(stdout.stream, columns === undefined ? {} : { columns }),
    stderr: Object.assign(stderr.stream, columns === undefined ? {} : { columns, isTTY: true }),
  } as unknown as Terminal;
  const provider = { name: 'the test authority', rootSha256: options.rootFingerprint };
  const code = await runOperator(argv, terminal, provider);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

function collector(onText: (text: string) => void = () => undefined): { stream: Writable; text: () => string } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      onText(String(chunk));
      done();
    },
  });
  return { stream, text: () => chunks.join('') };
}
