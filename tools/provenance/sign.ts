// `strongroom release sign`: the publisher's signature of a release, in a file of its own, so that everybody who builds
// the release gets the same bytes of all other files.

import { createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../common/command-line/program.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import { keyId, seal } from './dsse.ts';
import { ENVELOPE, PROVENANCE, readKey, readWhole } from './files.ts';

export const signCommand = command(
  {
    summary: 'Sign the provenance of a release',
    notes: [
      `Writes ${ENVELOPE} beside ${PROVENANCE}: the statement in a DSSE envelope. Verify the folder afterwards, with ` +
        'the public key that you publish.',
    ],
    argument: { name: 'FOLDER', meaning: 'The files of the release' },
    flags: {
      key: {
        placeholder: 'FILE',
        required: true,
        meaning: 'An Ed25519 private key (PEM): openssl genpkey -algorithm ed25519',
      },
    },
    examples: ['strongroom release sign build/release --key signing.pem'],
  },

  async ({ values, argument: folder }, { stdout }: Printed) => {
    const privateKey = readKey(values.key, 'private');
    const publicKey = createPublicKey(privateKey);
    writeFileSync(join(folder, ENVELOPE), seal(readWhole(join(folder, PROVENANCE)), privateKey, publicKey));
    stdout.write(`signed with the key ${keyId(publicKey)}\n`);
  },
);
