// What `strongroom eif describe` says of itself.

import type { Description } from '../../command-line/command.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';

export const DESCRIBE = {
  summary: 'Print what an image holds and what will be measured of it',
  notes: [
    "Everything is computed from the image's bytes. Exit 1 when its signature is not valid, or FILE is not the " +
      'configuration baked in.',
  ],
  argument: { name: 'IMAGE', meaning: 'An image file' },
  flags: {
    config: {
      placeholder: 'FILE',
      meaning: 'The configuration that the image will fetch: adds PCR16; or the one that should be baked in',
    },
    ...JSON_OUTPUT,
  },
  examples: [
    'strongroom eif describe build/image/image.eif',
    'strongroom eif describe image.eif --config strongroom.yaml --json',
  ],
} as const satisfies Description;
