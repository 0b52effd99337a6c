// What `slashing …` says of itself.

import { outputFile } from '../../command-line/output-file.ts';
import { remoteDescription } from '../command.ts';

/** The signer answers an import when all of it is merged and durable. */
const TIMEOUT_SECONDS = 600;
/** So many keys in one URL, with their commas, stay below the 16 KiB that Node takes for a request's head. */
export const MAX_PUBLIC_KEYS = 128;

export const slashingExport = remoteDescription({
  summary: 'Write the records as EIP-3076 to stdout or a file',
  flags: {
    ...outputFile('Where to; stdout when not given'),
    file: { placeholder: 'FILE', formerly: 'output', meaning: 'The same' },
    pubkeys: { placeholder: 'KEY,KEY', meaning: `Only these keys, at most ${MAX_PUBLIC_KEYS}` },
  },
  timeoutSeconds: TIMEOUT_SECONDS,
  examples: [
    'slashing export --output slashing_protection.json',
    'slashing export --pubkeys 0x8000…,0xa99a… > two-keys.json',
  ],
});

export const slashingImport = remoteDescription({
  summary: 'Merge an EIP-3076 file into the records',
  flags: {},
  argument: { name: 'FILE', meaning: 'An EIP-3076 file, or - for stdin' },
  timeoutSeconds: TIMEOUT_SECONDS,
  examples: [
    'slashing import slashing_protection.json',
    'slashing import - --token env:SLASHING_TOKEN < slashing_protection.json',
  ],
});
