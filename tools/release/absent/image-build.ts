// In a release `strongroom eif build` says where it can be had: an image is bundled from the sources. What examines
// images (`describe`, `compare`) needs no sources, and is there.

import type { Command } from '../../../common/command-line/program.ts';
import type { Printed } from '../../../common/command-line/terminal.ts';
import { BuildError } from '../../../eif/inputs.ts';

export const buildCommand: Command<Printed> = {
  description: {
    summary: 'Build an enclave image (in a checkout of the sources)',
    notes: ['An image is bundled from the sources, which a release does not have: check out its tag, and build there.'],
  },

  async run() {
    throw new BuildError('an image is built from the sources, which a release does not have', [
      'check out the tag of this release, and run bin/strongroom eif build there',
    ]);
  },
};
