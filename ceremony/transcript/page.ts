// A transcript as one page to print and sign (common/command-line/report-page.ts), as data: every line with all that it
// says. It is made of a transcript that verifies, and says so when that one has not ended.

import { keySections } from '../../common/attestation/key-sections.ts';
import { type PageSection, reportPage, type Value } from '../../common/command-line/report-page.ts';
import { isFinished, type Transcript, transcriptHead } from './chain.ts';
import { lackingIn, type Person, peopleIn } from './day.ts';
import type { Entry } from './entries.ts';
import { ceremonyOf, ceremonyRegister } from './meaning.ts';
import type { RecordedOrigin } from './origin.ts';

/** Members of a line that stand in columns or sections of their own. */
const ELSEWHERE = new Set(['number', 'at', 'previous', 'format', 'ceremony', 'evidence', 'root_token']);

export function transcriptPage(transcript: Transcript, origins: readonly RecordedOrigin[]): string {
  const { entries, digests } = transcript;
  const [start] = entries;
  if (start?.entry !== 'start') throw new Error('a transcript that was not verified');
  const people = peopleIn(entries);
  const ceremony = ceremonyOf(start);
  const nameOf = (is: (one: Person) => boolean): string => people.find(is)?.name ?? '–';
  const each = (texts: readonly string[]): Value => texts.map((exact) => ({ exact }));
  const lacking = lackingIn(entries);
  const end = entries.findLast((entry) => 'at' in entry)?.at ?? start.at;
  const title = isFinished(transcript) ? 'INCOMPLETE: what this record lacks' : 'What this record still lacks';
  const draft: PageSection = { title: 'DRAFT: this record has not ended. Do not sign it.', box: 'bad' };
  const head = groupedDigits(transcriptHead(transcript));
  const compare = 'Who has the file of this record compares: strongroom ceremony transcript verify FILE --head HEX';
  const sections: readonly PageSection[] = [
    {
      title: `Record of a custody ceremony, from ${start.at} to ${end}, ${entries.length} lines`,
      fields: [['Place', start.place]],
    },
    ...(isFinished(transcript) ? [] : [draft]),
    ...(lacking.length === 0 ? [] : [{ title, box: 'bad', notes: lacking } as const]),
    { title: 'Head of the record (SHA-256 of its last line)', box: 'plain', notes: [{ exact: head }, compare] },
    {
      title: 'Ceremony',
      fields: [
        ['Generation', `${ceremony.generation}, for ${start.signers === 'enclaves' ? 'enclaves' : 'ordinary hosts'}`],
        ['Custody keys', `any ${ceremony.kmsThreshold} of ${ceremony.kmsKeys.length} open the master key`],
        ['Digest (SHA-384)', shown(start.ceremony_digest_sha384)],
        ['PCR17 of an image with this ceremony', shown(ceremonyRegister(ceremony))],
      ],
      table: {
        head: ['Custody key', 'ARNs', 'Custodian'],
        rows: [
          ...ceremony.kmsKeys.map(({ arns }, at) => {
            return [at + 1, each(arns), nameOf(({ custodyKeys }) => custodyKeys.includes(at + 1))];
          }),
          ...ceremony.retiredKmsKeys.map(({ arns }, at) => [`retired ${at + 1}`, each(arns), '–']),
        ],
      },
    },
    {
      title: 'Recipients: any one alone can open the root token',
      table: {
        head: ['Recipient', 'age public key', 'Participant'],
        rows: ceremony.rootTokenRecipients.map((recipient, at) => {
          return [at + 1, { exact: recipient }, nameOf((one) => one.recipient === recipient)];
        }),
      },
    },
    ...origins.flatMap(({ line, entry: { deployment, record }, links, rootToken }): PageSection[] => [
      {
        title: `Master key (line ${line}), by documents of enclaves with the PCR values below`,
        fields: [
          ['Deployment', `${deployment.id}, network ${deployment.network}`],
          ['Record (SHA-384)', shown(record)],
        ],
      },
      ...keySections({ links, rows: rootToken === undefined ? [] : [rootToken] }),
    ]),
    {
      title: 'Record',
      table: {
        head: ['Line', 'Time', 'What', 'Digest begins'],
        rows: entries.map((entry, at) => {
          return [entry.number, 'at' in entry ? entry.at : '', said(entry), { exact: digests[at]?.slice(0, 8) ?? '' }];
        }),
      },
    },
  ];
  return reportPage({
    title: start.title,
    heading: start.title,
    sections: isFinished(transcript) ? [...sections, signatures(people)] : sections,
    foot: head,
    shown: (text) => text, // what a page would not show was refused when it came in
  });
}

/** The digits stand in groups of eight, which are compared and copied without losing the place. */
export function groupedDigits(hex: string): string {
  return (hex.match(/.{1,8}/g) ?? []).join(' ');
}

/** Everything that a line says, each member below the other: a text of several lines cannot look like members. */
function said(line: Entry): Value {
  const { registers = {}, deployment = {}, ...own } = { registers: undefined, deployment: undefined, ...line };
  const members = Object.entries({ ...own, ...deployment, ...registers }).filter(([name]) => !ELSEWHERE.has(name));
  return members.map(([name, value]): Value => {
    const isDigest = /^[0-9a-f]{64,96}$/.test(String(value));
    const text = isDigest ? '' : String(value).replaceAll('\n', ' ⏎ ');
    return [`${name.replaceAll('_', ' ')}: ${text}`, ...(isDigest ? [shown(String(value))] : [])];
  });
}

function shown(digest: string): Value {
  return { exact: groupedDigits(digest) };
}

function signatures(people: readonly Person[]): PageSection {
  const rows = people.map(({ name, role, organization = '' }) => [[name, role, organization], '', '', '']);
  const head = ['Who', 'Signature', 'Date and time', 'Last 8 digits of the head, by hand'];
  const was =
    'I was there. This page says what happened. I read the head of the record on the screen: it is the one above.';
  return { title: 'Signatures', notes: [was], table: { head, rows, byHand: true } };
}
