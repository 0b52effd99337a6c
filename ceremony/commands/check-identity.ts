// `strongroom ceremony check-identity` (specification/custody.md#identities). Offline; nothing is kept; the identity is
// never printed.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { command } from '../../common/command-line/program.ts';
import { note } from '../../common/command-line/terminal.ts';
import { wrapFor } from '../../common/command-line/wrap.ts';
import { encryptToRecipients } from '../age.ts';
import { type Ceremony, ceremonyDigest } from '../definition.ts';
import { CEREMONY_FILE } from './arguments.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type CeremonyTerminal, CommandError } from './command.ts';
import { type IdentityFile, openWith, readIdentityFile } from './identity-file.ts';
import { recipientPosition } from './recipient.ts';

const CHALLENGE_BYTES = 32;

export const checkIdentity = command(
  {
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
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { identity: identityPath, recipient } = values;
    const ceremony = await readCeremonyFile(file);
    const identity = await readIdentityFile(identityPath, terminal);
    const proven: number[] = [];
    for (const at of candidates(ceremony, identity, recipient)) {
      if (await opensChallenge(ceremony.rootTokenRecipients[at] ?? '', identity, terminal)) proven.push(at);
    }
    if (proven.length === 0) throw new CommandError(notProven(ceremony, recipient));
    terminal.stdout.write(`${wrapFor(terminal.stdout, proof(ceremony, proven)).join('\n')}\n`);
    note(terminal, `strongroom: opened by ${identity.opener} (${identity.kind})`);
  },
);

function candidates(ceremony: Ceremony, identity: IdentityFile, named: string | undefined): readonly number[] {
  const { rootTokenRecipients: recipients } = ceremony;
  if (named !== undefined) return [recipientPosition(recipients, named)];
  const all = [...recipients.keys()];
  if (identity.opener === 'strongroom' || all.length === 1) return all;
  const claimed = all.filter((at) => identity.claimedRecipients.includes(recipients[at] ?? ''));
  if (claimed.length > 0) return claimed;
  throw new CommandError(
    `the ceremony has ${all.length} recipients and age opens with ${identity.path}: name yours with --recipient`,
  );
}

async function opensChallenge(recipient: string, identity: IdentityFile, terminal: CeremonyTerminal): Promise<boolean> {
  const challenge = Buffer.from(`strongroom ceremony challenge ${randomBytes(CHALLENGE_BYTES).toString('hex')}\n`);
  const opened = await openWith(identity, await encryptToRecipients(challenge, [recipient]), terminal);
  if (opened.ok) {
    const { plaintext } = opened;
    if (plaintext.length === challenge.length && timingSafeEqual(plaintext, challenge)) return true;
    throw new CommandError(
      'what came out is not the challenge that went in: do not use this identity, or this machine',
    );
  }
  if (opened.refusal === 'not_for_identity') return false;
  throw new CommandError('the challenge was damaged on its way: do not use this machine');
}

function notProven({ rootTokenRecipients: { length } }: Ceremony, named: string | undefined): string {
  const which =
    named !== undefined
      ? 'that recipient'
      : length === 1
        ? 'the ceremony’s recipient'
        : `any of the ceremony’s ${length} recipients`;
  return `NOT PROVEN: this identity does not open what is encrypted to ${which}: it is another identity, or the ceremony names another recipient`;
}

function proof(ceremony: Ceremony, proven: readonly number[]): string {
  const { generation, rootTokenRecipients: recipients } = ceremony;
  const lines = [
    `Ceremony generation ${generation}, digest (SHA-384) ${ceremonyDigest(ceremony).toString('hex')}`,
    ...proven.map(
      (at) =>
        `PROVEN: this identity opens what is encrypted to recipient ${at + 1} of ${recipients.length}, ${recipients[at]}`,
    ),
  ];
  return lines.join('\n');
}
