// Programs on the reader's PATH that are not here: `aws`, and `ssh` and `scp` to the machines of signers. Each is a
// shell script of a few lines that asks the rehearsal's own process, which holds the stand-ins; so none of them costs
// the start of a process of ours. What a stand-in does not know is refused: a page cannot use it unseen.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';

/** @returns what it writes to stdout. @throws Refused */
export type Program = (args: readonly string[], folder: string) => Promise<string>;

/** As a program that ends with an exit code of its own. */
export class Refused extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 255) {
    super(message);
    this.exitCode = exitCode;
  }
}

export interface Programs {
  /** For the front of PATH. */
  readonly folder: string;
  close(): Promise<void>;
}

/** The first line of an answer is the exit code. */
const SCRIPT = (socket: string, name: string): string => `#!/bin/sh
for arg; do set -- "$@" --data-urlencode "arg=$arg"; shift; done
answer=$(curl -sS --unix-socket '${socket}' -o - http://rehearsal/${name} --data-urlencode "folder=$PWD" "$@"; echo .) || exit
answer=\${answer%.}
code=\${answer%%
*}
[ "$code" = 0 ] || exec 1>&2
printf %s "\${answer#*
}"
exit "$code"
`;

export async function startPrograms(folder: string, programs: Readonly<Record<string, Program>>): Promise<Programs> {
  const [bin, socket] = [join(folder, 'bin'), join(folder, 'programs')];
  mkdirSync(bin);
  for (const name of Object.keys(programs)) writeScript(bin, name, SCRIPT(socket, name));
  const server = createServer(async (request, response) => {
    const program = programs[String(request.url).slice(1)];
    const form = new URLSearchParams(await textOf(request));
    try {
      if (program === undefined) throw new Refused('there is no such program');
      response.end(`0\n${await program(form.getAll('arg'), String(form.get('folder')))}`);
    } catch (error) {
      const { message, exitCode } = error instanceof Refused ? error : { message: String(error), exitCode: 254 };
      response.end(`${exitCode}\n${message}\n`);
    }
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    folder: bin,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export function writeScript(bin: string, name: string, text: string): void {
  const path = join(bin, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part;
  return text;
}
