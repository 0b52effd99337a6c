// The participants' part of a rehearsal. It never shows the token: a log of the rehearsal would keep it, and people
// should not get used to seeing one.

import { randomBytes } from 'node:crypto';
import { encryptToRecipients } from '../ceremony/age.ts';
import { type CeremonyTerminal, CommandError } from '../ceremony/commands/command.ts';
import { type IdentityFile, openWith, readIdentityFile } from '../ceremony/commands/identity-file.ts';
import { writeCeremonyOutput } from '../ceremony/commands/output-file.ts';
import type { Ceremony } from '../ceremony/definition.ts';
import { readRootToken } from '../ceremony/root-token-opening.ts';
import type { Stage } from './stage.ts';

export interface OpeningOptions {
  readonly participants: readonly IdentityFile[];
  readonly rowFile: string | undefined;
  readonly isForced: boolean;
}

export async function readParticipants(
  { rootTokenRecipients }: Ceremony,
  files: readonly string[],
  terminal: CeremonyTerminal,
): Promise<IdentityFile[]> {
  const participants: IdentityFile[] = [];
  for (const path of files) {
    const identity = await readIdentityFile(path, terminal);
    const opened = await openWith(identity, await encryptToRecipients(randomBytes(32), rootTokenRecipients), terminal);
    if (!opened.ok) throw new CommandError(`${path} opens nothing that is encrypted to the ceremony’s recipients`);
    participants.push(identity);
  }
  return participants;
}

export async function rehearseOpening(
  { custody, heading, say, table }: Pick<Stage, 'custody' | 'heading' | 'say' | 'table'>,
  { rootTokenRecipients: recipients }: Ceremony,
  { participants, rowFile, isForced }: OpeningOptions,
  terminal: CeremonyTerminal,
): Promise<string | undefined> {
  const row = await custody.row(table, 'ROOT_TOKEN_BOOTSTRAP');
  heading('Opening the root token');
  say(
    `It is in the row ROOT_TOKEN_BOOTSTRAP, encrypted to ${recipients.length === 1 ? 'one recipient' : `${recipients.length} recipients, any one of whom opens it alone`}.`,
  );
  say('Each participant, offline, with the row as row.json and an identity of their own as IDENTITY:');
  for (const [at, recipient] of recipients.entries()) {
    say(`  recipient ${at + 1}, ${recipient}\n    jq -r .Item.value.S row.json | age -d -i IDENTITY`);
  }
  if (rowFile !== undefined) {
    await writeCeremonyOutput(rowFile, `${JSON.stringify({ Item: row }, undefined, 4)}\n`, isForced);
    say(`The row of this rehearsal is kept: ${rowFile}. What comes out begins with sr_mgmt_ and has 51 characters.`);
  }
  let token: string | undefined;
  for (const participant of participants) {
    say(`$ strongroom ceremony open-root-token --identity ${participant.path} --row row.json`);
    const opened = readRootToken(await openWith(participant, row?.['value']?.S ?? '', terminal));
    if (!opened.ok) throw new Error(`${participant.path} does not open the root token: ${opened.refusal}`);
    say(`${opened.token.slice(0, 'sr_mgmt_'.length)}…  opened by ${participant.opener} (${participant.kind})`);
    token = opened.token;
  }
  if (token === undefined) say('NOT opened here: no participant is here (--identity FILE), so it is not used either.');
  return token;
}
