// `strongroom ceremony check-identity`: before the day, the proof that a participant's identity opens what is encrypted
// to their recipient of the ceremony. A challenge, random and made here, is encrypted to the recipient, opened with the
// identity, and compared. Offline; nothing is kept; the identity is never printed.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { note } from '../../command-line/terminal.ts';
import { wrapFor } from '../../command-line/wrap.ts';
import { encryptToRecipients } from '../age.ts';
import { type Ceremony, ceremonyDigest } from '../definition.ts';
import { CHECK_IDENTITY } from '../descriptions/custody.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type Command, CommandError, readArguments, type Terminal } from './command.ts';
import { type IdentityFile, openWith, readIdentityFile } from './identity-file.ts';
import { recipientPosition } from './recipient.ts';

const CHALLENGE_BYTES = 32;

export const checkIdentity: Command = {
  description: CHECK_IDENTITY,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, CHECK_IDENTITY, terminal);
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
};

/** Positions in root_token_recipients that are to be proven. */
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

async function opensChallenge(recipient: string, identity: IdentityFile, terminal: Terminal): Promise<boolean> {
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
