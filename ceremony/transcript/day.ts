// What the day of a ceremony leaves in its record (specification/custody.md#transcript-whole): who is there, what each
// of them says that they did, and what still lacks. It believes what people say, as the record does.

import type { Deed, Entry, PersonEntry, Role, StartEntry } from './entries.ts';

export interface Person {
  readonly name: string;
  readonly role: Role;
  readonly organization?: string;
  readonly identifiedBy?: string;
  readonly recipient?: string;
  readonly custodyKeys: readonly number[];
}

interface DeedTerms {
  readonly role: Role;
  /** What they say when they use no other words; undefined: only they can say it. */
  readonly words: ((person: Person) => string) | undefined;
}

export const DEED_TERMS: Readonly<Record<Deed, DeedTerms>> = {
  said_time: { role: 'witness', words: undefined },
  compared_digest: { role: 'witness', words: () => 'The digest of the ceremony is the one that I brought.' },
  compared_pcrs: { role: 'witness', words: () => 'The PCR values of the image are those of a source of my own.' },
  granted_encrypt: { role: 'custodian', words: (person) => `I granted kms:Encrypt on ${keysOf(person)}.` },
  revoked_encrypt: { role: 'custodian', words: (person) => `I revoked kms:Encrypt on ${keysOf(person)}.` },
  saw_policies: {
    role: 'witness',
    words: () => 'I looked at the policy of every custody key: none of them grants kms:Encrypt any more.',
  },
  opened_root_token: { role: 'participant', words: () => 'I opened the root token with my identity.' },
  revoked_root_token: { role: 'operator', words: () => 'I revoked the root token.' },
};

export function peopleIn(entries: readonly Entry[]): readonly Person[] {
  const people = new Map<string, Person>();
  for (const entry of entries) {
    if (entry.entry === 'person') people.set(entry.name, withLine(people.get(entry.name), entry));
  }
  return [...people.values()];
}

function withLine(known: Person | undefined, entry: PersonEntry): Person {
  const { name, role, organization, identified_by: identifiedBy, recipient, custody_key: key } = entry;
  return {
    ...known,
    name,
    role,
    ...(organization === undefined ? {} : { organization }),
    ...(identifiedBy === undefined ? {} : { identifiedBy }),
    ...(recipient === undefined ? {} : { recipient }),
    custodyKeys: [...(known?.custodyKeys ?? []), ...(key === undefined ? [] : [key])].sort((a, b) => a - b),
  };
}

export function deedProblem({ role, recipient, custodyKeys }: Person, did: Deed): string | undefined {
  const { role: wanted } = DEED_TERMS[did];
  if (role !== wanted) return `is said by somebody who is no ${wanted}`;
  if (wanted === 'custodian' && custodyKeys.length === 0) return 'is said by a custodian of no custody key';
  if (did === 'opened_root_token' && recipient === undefined) return 'is said by a participant with no recipient';
  return undefined;
}

export function lackingIn(entries: readonly Entry[]): readonly string[] {
  const [start] = entries;
  if (start?.entry !== 'start') return ['no start'];
  const people = peopleIn(entries);
  const said = (did: Deed, sentence: string, after = -1) => (lastDeed(entries, did) > after ? [] : [sentence]);
  const holds = (content: string) => entries.some((entry) => entry.entry === 'file' && entry.holds === content);
  const pcrs = entries.findLastIndex(({ entry }) => entry === 'pcrs');
  const rowIsRead = holds('root_token_row');
  // The first ceremony makes the root token; a later one may make another.
  const opensRootToken = start.ceremony.generation === 1 || rowIsRead;
  return [
    ...lackingPeople(start, people),
    ...said('said_time', 'no witness said the time on a watch of their own'),
    ...said('compared_digest', 'no witness compared the digest of the ceremony with the one that they brought'),
    ...when(start.signers === 'enclaves', [
      ...when(pcrs === -1, ['the PCR values of the image']),
      ...said('compared_pcrs', 'no witness compared the PCR values with those of a source of their own', pcrs),
    ]),
    ...when(!holds('configuration'), ['the digest of the configuration of the signers']),
    ...start.ceremony.kms_keys.flatMap((_, at) => lackingOfKey(entries, at + 1)),
    ...said(
      'saw_policies',
      'no witness looked at the policies of the custody keys after kms:Encrypt was revoked',
      lastDeed(entries, 'revoked_encrypt'),
    ),
    ...when(opensRootToken, [
      ...when(!rowIsRead, ['the digest of the row ROOT_TOKEN_BOOTSTRAP']),
      ...said('opened_root_token', 'nobody says who opened the root token'),
      ...said('revoked_root_token', 'nobody says that the root token was revoked'),
    ]),
    ...when(start.signers === 'enclaves' && !entries.some(({ entry }) => entry === 'master_key'), [
      'the evidence of who made the master key',
    ]),
  ];
}

function when(asked: boolean, sentences: readonly string[]): readonly string[] {
  return asked ? sentences : [];
}

function lastDeed(entries: readonly Entry[], did: Deed, by?: string): number {
  return entries.findLastIndex(
    (entry) => entry.entry === 'statement' && entry.did === did && (by === undefined || entry.by === by),
  );
}

function lackingPeople({ ceremony }: StartEntry, people: readonly Person[]): readonly string[] {
  const roles = (['lead', 'operator', 'witness'] as const).filter((role) => !people.some((one) => one.role === role));
  const keys = numbered(ceremony.kms_keys).filter((key) => !people.some((one) => one.custodyKeys.includes(key)));
  const recipients = numbered(ceremony.root_token_recipients).filter((number) =>
    people.every(({ recipient }) => recipient !== ceremony.root_token_recipients[number - 1]),
  );
  // The witness is who looks at what the others show.
  const unknown = people.filter(({ role, identifiedBy }) => role !== 'witness' && identifiedBy === undefined);
  return [
    ...roles.map((role) => `nobody is there as ${role}`),
    ...keys.map((key) => `nobody is there as the custodian of custody key ${key}`),
    ...recipients.map((number) => `nobody is there as the participant of recipient ${number}`),
    ...unknown.map(({ name }) => `nobody says how ${name} was identified`),
  ];
}

/** What a custodian did before the key was theirs was of another key. */
function lackingOfKey(entries: readonly Entry[], key: number): readonly string[] {
  const given = entries.findIndex((entry) => entry.entry === 'person' && entry.custody_key === key);
  const custodian = entries[given];
  const name = custodian?.entry === 'person' ? custodian.name : '';
  const granted = lastDeed(entries, 'granted_encrypt', name);
  if (granted <= given) return [`nobody says that kms:Encrypt on custody key ${key} was granted, and revoked`];
  const isRevoked = lastDeed(entries, 'revoked_encrypt', name) > granted;
  return when(!isRevoked, [`nobody says that kms:Encrypt on custody key ${key} was revoked`]);
}

function keysOf({ custodyKeys }: Person): string {
  return `custody key${custodyKeys.length > 1 ? 's' : ''} ${custodyKeys.join(', ')}`;
}

function numbered(list: readonly unknown[]): readonly number[] {
  return list.map((_, at) => at + 1);
}
