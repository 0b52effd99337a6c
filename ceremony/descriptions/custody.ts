// What the commands for a custody ceremony say of themselves: plan it, make and check identities, open the root token.

import type { Description } from '../../command-line/command.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';
import { CEREMONY_FILE } from './arguments.ts';

export const PLAN = {
  summary: 'Print a custody ceremony, its digest, its PCR17, which losses it survives, and warnings',
  notes: ['KMS is not contacted.'],
  argument: CEREMONY_FILE,
  flags: JSON_OUTPUT,
  examples: ['strongroom ceremony plan ceremony.yaml', 'strongroom ceremony plan strongroom.yaml --json'],
} as const satisfies Description;

export const KEYGEN = {
  summary: 'Make an age identity: the secret into a new file (mode 0600), its recipient to stdout',
  flags: {
    output: {
      placeholder: 'FILE',
      required: true,
      isOutputFile: true,
      meaning: 'The file to write; one that exists is never overwritten',
    },
    identity: { placeholder: 'FILE', formerly: 'output', meaning: 'The file to write' },
  },
  examples: [
    'strongroom ceremony keygen --output alice.age',
    'strongroom ceremony keygen --output /media/offline/root.age >> recipients.txt',
  ],
} as const satisfies Description;

export const CHECK_IDENTITY = {
  summary: 'Prove that an identity opens what is encrypted to its recipient in a ceremony, offline',
  usage: ['FILE --identity FILE [--recipient N|age1…]'],
  notes: [
    'A random challenge is encrypted to the recipient and opened with the identity; nothing is kept, and the identity ' +
      'is never printed. Exit 0 only when it opened. Identities under a passphrase, or of an age plugin, are opened ' +
      'by the program age, which asks on this terminal.',
  ],
  argument: CEREMONY_FILE,
  flags: {
    identity: {
      placeholder: 'FILE',
      required: true,
      meaning: 'The participant\'s identities, as "strongroom ceremony keygen", age-keygen or age -p write them',
    },
    recipient: {
      placeholder: 'N|age1…',
      meaning:
        'Which of root_token_recipients, by its number in "strongroom ceremony plan" or in full; needed when age is ' +
        "the opener, because it asks once for each challenge (default: the one that the file's comment names, or each)",
    },
  },
  examples: [
    'strongroom ceremony check-identity ceremony.yaml --identity alice.age',
    'strongroom ceremony check-identity ceremony.yaml --identity bob-passphrase.age --recipient 2',
  ],
} as const satisfies Description;

export const OPEN_ROOT_TOKEN = {
  summary: 'Decrypt the root token of a ROOT_TOKEN_BOOTSTRAP row, offline',
  flags: {
    identity: {
      placeholder: 'FILE',
      required: true,
      meaning:
        'age X25519 identities, one a line, as "strongroom ceremony keygen" and age-keygen write them; those under a ' +
        'passphrase, or of an age plugin, are opened by the program age, which asks here',
    },
    row: {
      placeholder: 'FILE',
      required: true,
      meaning: 'The row as "aws dynamodb get-item" prints it, or its armored value alone; - is stdin',
    },
  },
  examples: [
    'strongroom ceremony open-root-token --identity alice.age --row row.json',
    `aws dynamodb get-item --table-name strongroom-state --key '{"pk":{"S":"ROOT_TOKEN_BOOTSTRAP"}}' |\n` +
      '  strongroom ceremony open-root-token --identity alice.age --row -',
  ],
} as const satisfies Description;
