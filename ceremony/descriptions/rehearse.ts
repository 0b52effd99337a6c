// What `strongroom ceremony rehearse` says of itself. The command reaches beyond this folder (rehearsal/), and is
// loaded when somebody asks for it.

import type { Description } from '../../command-line/command.ts';
import { CEREMONY_FILE } from './arguments.ts';

export const REHEARSE = {
  summary: 'Run the entire first boot of a ceremony on this machine, with throw-away keys',
  notes: [
    'Local stand-ins take the place of its custody keys and of DynamoDB. The root token is encrypted to the ' +
      "ceremony's own recipients, and is worth nothing after the rehearsal: each participant opens it as on the day, " +
      'here or on a machine of their own.',
    'Needs Linux on x86-64, and the optional package @dynoxide/linux-x64, a stand-in for DynamoDB, which npm installs ' +
      'there.',
  ],
  argument: CEREMONY_FILE,
  flags: {
    identity: {
      placeholder: 'FILE',
      repeatable: true,
      meaning:
        'A participant who is here: it opens the root token, which then asks the signer for its status. A passphrase ' +
        'is asked for twice: the identity is proven before the boot',
    },
    output: {
      placeholder: 'FILE',
      meaning: "Keep the rehearsal's row of the root token, for participants who open it elsewhere",
    },
    force: { meaning: 'Overwrite that file' },
  },
  examples: [
    'strongroom ceremony rehearse ceremony.yaml --output row.json',
    'strongroom ceremony rehearse strongroom.yaml --identity alice.age | tee rehearsal.log',
  ],
} as const satisfies Description;
