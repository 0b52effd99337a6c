// `strongroom ceremony record person`: who is there, in which role, and whose identity they hold.

import { ROLES } from '../../descriptions/arguments.ts';
import { RECORD_PERSON } from '../../descriptions/transcript.ts';
import type { Role, Said } from '../../transcript/entries.ts';
import { type Command, CommandError, readArguments } from '../command.ts';
import { recipientPosition } from '../recipient.ts';
import { append, optional, readRecord } from './append.ts';

export const recordPerson: Command = {
  description: RECORD_PERSON,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_PERSON, terminal);
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
