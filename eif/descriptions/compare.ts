// What `strongroom eif compare` says of itself.

import type { Description } from '../../command-line/command.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';

export const COMPARE = {
  summary: 'Say whether two images are the same, or an image the one that was published',
  usage: ['IMAGE IMAGE [OPTIONS]', 'IMAGE --reference FILE [OPTIONS]'],
  notes: ['Exit 0 when they are the same, 1 when they differ, 2 when one of them cannot be read.'],
  argument: { name: 'IMAGE', meaning: 'An image file', count: 'many' },
  flags: {
    reference: { placeholder: 'FILE', meaning: 'A published pcrs.json, in place of the second image' },
    record: {
      placeholder: 'FILE',
      meaning: 'With --reference: the pcrs.json of your own build, whose inputs are compared',
    },
    config: {
      placeholder: 'FILE',
      meaning: 'With --reference: the configuration that your image will fetch, for PCR16',
    },
    ...JSON_OUTPUT,
  },
  examples: [
    'strongroom eif compare mine/image.eif theirs/image.eif',
    'strongroom eif compare build/image/image.eif --reference published/pcrs.json --record build/image/pcrs.json',
  ],
} as const satisfies Description;
