// Bounded reading of what a command is pointed at: a file, or stdin for `-`.

import { createReadStream } from 'node:fs';
import { type CeremonyTerminal, CommandError, fileProblem } from './command.ts';

/** A DynamoDB item is at most 400 KB (AWS, Quotas); its JSON escapes the line ends. */
const MAX_INPUT_BYTES = 1024 * 1024;

export async function readCeremonyInput(file: string, { stdin }: CeremonyTerminal): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const part of file === '-' ? stdin : createReadStream(file)) {
      parts.push(part as Uint8Array);
      length += (part as Uint8Array).length;
      if (length > MAX_INPUT_BYTES)
        throw new CommandError(`${file} has more than ${MAX_INPUT_BYTES} bytes: is it the right file?`);
    }
  } catch (error) {
    throw error instanceof CommandError ? error : fileProblem(error, file);
  }
  return Buffer.concat(parts).toString('utf8');
}
