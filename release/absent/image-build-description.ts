// What `strongroom eif build` says of itself in a release (image-build.ts).

import type { Description } from '../../command-line/command.ts';

export const BUILD: Description = {
  summary: 'Build an enclave image (in a checkout of the sources)',
  notes: ['An image is bundled from the sources, which a release does not have: check out its tag, and build there.'],
};
