// What `strongroom eif build` says of itself.

import type { Description } from '../../command-line/command.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';

export const BUILD = {
  summary: 'Build an enclave image, and say what will be measured of it',
  usage: ['--image FILE --ceremony FILE (--config FILE | --fetch-config) [OPTIONS]'],
  notes: [
    'Writes image.eif and pcrs.json. The same inputs give the same bytes, on any host of this architecture with the ' +
      'same libraries. Run "make image-parts" first: it compiles the addon and the first process.',
  ],
  flags: {
    image: {
      placeholder: 'FILE',
      required: true,
      meaning: 'The kernel, its command line and its modules, each pinned by SHA-256 (image.yaml)',
    },
    ceremony: {
      placeholder: 'FILE',
      required: true,
      meaning: 'The custody ceremony that is compiled in, or a configuration that has one',
    },
    config: {
      placeholder: 'FILE',
      meaning: "The signer's configuration, baked in: PCR16 is known before the image runs",
    },
    'fetch-config': {
      meaning: 'No configuration in the image: the parent instance gives it at boot, and it is measured then',
    },
    ca: {
      placeholder: 'FILE',
      repeatable: true,
      meaning: "Certificate authorities to trust beside Amazon's own, in PEM",
    },
    'signing-key': {
      placeholder: 'FILE',
      meaning: 'P-384 private key in PEM; with its certificate the image is signed (PCR8)',
    },
    'signing-certificate': { placeholder: 'FILE', meaning: 'The certificate of that key, in PEM' },
    commit: { placeholder: 'HEX', meaning: 'The commit of the sources, where git does not say it' },
    directory: { placeholder: 'FOLDER', meaning: 'Where to write; build/image when not given' },
    ...JSON_OUTPUT,
    json: { meaning: 'Print pcrs.json, not a table' },
  },
  examples: [
    'strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml',
    'strongroom eif build --image image.yaml --ceremony ceremony.yaml --fetch-config --ca rds-ca.pem --directory out',
  ],
} as const satisfies Description;
