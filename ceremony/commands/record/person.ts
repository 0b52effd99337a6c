// `strongroom ceremony record person`: who is there, in which role, and whose identity they hold.

import type { Description } from '../../../command-line/command.ts';
import { ROLES, type Role, type Said } from '../../transcript/entries.ts';
import { type Command, CommandError, readArguments } from '../command.ts';
import { recipientPosition } from '../recipient.ts';
import { append, optional, readRecord, TRANSCRIPT } from './append.ts';

const PERSON = {
  summary: 'Record who is there, and in which role',
  argument: TRANSCRIPT,
  flags: {
    name: { placeholder: 'NAME', required: true, meaning: 'As the person signs; statements name it' },
    role: {
      placeholder: 'ROLE',
      required: true,
      choices: ROLES,
      meaning: `What the person is there for: ${ROLES.join(', ')}`,
    },
    organization: { placeholder: 'TEXT', meaning: 'Whom the person acts for' },
    'identified-by': { placeholder: 'TEXT', meaning: 'How the others know who it is: "passport seen by the witness"' },
    recipient: {
      placeholder: 'N|age1…',
      meaning: 'The recipient whose identity this person holds, by its number in the ceremony or in full',
    },
  },
  examples: [
    'strongroom ceremony record person transcript.jsonl --name "Alice Example" --role participant --recipient 1',
    'strongroom ceremony record person transcript.jsonl --name "Wanda Wit" --role witness --organization "Audit Ltd"',
  ],
} as const satisfies Description;

export const recordPerson: Command = {
  description: PERSON,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, PERSON, terminal);
    const { role, recipient } = values;
    if (!isRole(role)) throw new CommandError(`--role is one of ${ROLES.join(', ')}`);
    const said: Said = {
      entry: 'person',
      name: values.name,
      role,
      ...optional('organization', values.organization),
      ...optional('identified_by', values['identified-by']),
      ...(recipient === undefined ? {} : { recipient: await recipientOf(file, recipient) }),
    };
    await append(file, [said], terminal);
  },
};

/** What is written by its number stands in the transcript in full. */
async function recipientOf(file: string, named: string): Promise<string> {
  const { entries } = await readRecord(file);
  const [start] = entries;
  const recipients = start?.entry === 'start' ? start.ceremony.root_token_recipients : [];
  return recipients[recipientPosition(recipients, named)] ?? '';
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}
