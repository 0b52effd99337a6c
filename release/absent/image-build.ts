// In a release `strongroom eif build` says where it can be had: an image is bundled from the sources. What examines
// images (`describe`, `compare`) needs no sources, and is there.

import type { Command } from '../../eif/commands/command.ts';
import { BuildError } from '../../eif/inputs.ts';
import { BUILD } from './image-build-description.ts';

export const buildCommand: Command = {
  description: BUILD,

  async run() {
    throw new BuildError('an image is built from the sources, which a release does not have', [
      'check out the tag of this release, and run bin/strongroom eif build there',
    ]);
  },
};
