// The ceremony of a file, as the signer would take it: the block by itself, or a configuration that has one. It
// refuses, with every reason at once, what the signer would refuse.

import { readFile } from 'node:fs/promises';
import { type Ceremony, InvalidCeremony, parseCeremony } from '../definition.ts';
import { readCeremonyValue } from '../yaml.ts';
import { CommandError, fileProblem } from './command.ts';

export async function readCeremonyFile(file: string): Promise<Ceremony> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw fileProblem(error, file);
  });
  let value: unknown;
  try {
    value = readCeremonyValue(text);
  } catch (error) {
    throw new CommandError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  try {
    return parseCeremony(value);
  } catch (error) {
    if (!(error instanceof InvalidCeremony)) throw error;
    const problems = error.problems.map((problem) => `  ${problem}`).join('\n');
    throw new CommandError(`${file}: the ceremony is not valid:\n${problems}`);
  }
}
