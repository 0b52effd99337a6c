// What `strongroom eif` says of itself, for help and completion: data alone.

import type { Description } from '../command-line/command.ts';
import { BUILD } from './descriptions/build.ts';
import { COMPARE } from './descriptions/compare.ts';
import { DESCRIBE } from './descriptions/describe.ts';

export const eifDescription: Description = {
  summary: 'Images for AWS Nitro Enclaves',
  commands: { build: BUILD, describe: DESCRIBE, compare: COMPARE },
  examples: [
    'strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml',
    'strongroom eif compare mine/image.eif theirs/image.eif',
  ],
};
