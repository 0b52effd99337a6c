// What the programs of a release say of themselves, for help and completion: as in a checkout (bin/described.ts), but
// for what a release does not have.

import type { Description } from '../../../common/command-line/command.ts';
import { buildCommand } from './image-build.ts';

export async function described(): Promise<Description> {
  const { default: written } = await import('../../../bin/descriptions.json', { with: { type: 'json' } });
  const everything = written as unknown as Description;
  const eif = written.commands.eif as unknown as Description;
  const images: Description = { ...eif, commands: { ...eif.commands, build: buildCommand.description } };
  return { ...everything, commands: { ...everything.commands, eif: images } };
}
