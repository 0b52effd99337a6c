// `strongroom ceremony script`: the day of a ceremony on paper, as numbered steps with a box for every person who does
// or watches something. Its commands, as printed and in order, make a record that lacks nothing (transcript/day.ts).

import { shellWord } from '../../common/command-line/printable.ts';
import { command } from '../../common/command-line/program.ts';
import { wrap } from '../../common/command-line/wrap.ts';
import { type Ceremony, ceremonyDigest } from '../definition.ts';
import { SIGNERS } from '../transcript/entries.ts';
import { ceremonyRegister } from '../transcript/meaning.ts';
import { groupedDigits } from '../transcript/page.ts';
import { CEREMONY_FILE } from './arguments.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import type { CeremonyTerminal } from './command.ts';

/** Paper has them in every fixed font that a printer has. */
const COLUMNS = 80;
const GROUPS_IN_A_ROW = 4;
const HEAD_ROWS = 2;
const TRANSCRIPT_FILE = 'transcript.jsonl';
const LINE_TO_WRITE_ON = '_'.repeat(24);

export const script = command(
  {
    summary: 'Print the day of a ceremony: numbered steps, with a box for each person who does or watches something',
    notes: [
      'For paper: at most 80 columns, but for addresses and commands that cannot be broken. The digests stand in groups of ' +
        'eight. Write the names of the people in, and use them in the commands in the place of LEAD, CUSTODIAN 1 and so on. ' +
        'What the commands record is all that "record end" asks for.',
    ],
    argument: CEREMONY_FILE,
    flags: {
      signers: {
        placeholder: 'KIND',
        choices: SIGNERS,
        meaning: 'What runs with this ceremony: enclaves, or ordinary hosts (default: enclaves)',
      },
    },
    examples: [
      'strongroom ceremony script ceremony.yaml | lp',
      'strongroom ceremony script strongroom.yaml --signers hosts > script.txt',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const ceremony = await readCeremonyFile(file);
    terminal.stdout.write(dayScript(ceremony, { file, forEnclaves: values.signers !== 'hosts' }));
  },
);

interface Day {
  readonly file: string;
  readonly forEnclaves: boolean;
}

interface Step {
  readonly title: string;
  readonly boxes: readonly (readonly [string, string])[];
  readonly commands: readonly string[];
  readonly blanks?: readonly string[];
}

function dayScript(ceremony: Ceremony, day: Day): string {
  const steps = [
    beginning(ceremony, day),
    digestStep(day),
    imageStep(ceremony, day),
    grantStep(ceremony, day),
    startStep(ceremony),
    revokeStep(ceremony),
    ...(ceremony.generation === 1 ? [openStep(ceremony)] : []),
    ...(day.forEnclaves ? [originStep()] : []),
    ...(ceremony.generation === 1 ? [useStep()] : []),
    endStep(),
    signStep(),
  ];
  return `${[...head(ceremony, day), ...steps.flatMap((step, at) => ['', ...stepLines(step, at + 1)])].join('\n')}\n`;
}

function head(ceremony: Ceremony, { forEnclaves }: Day): string[] {
  const { generation, kmsThreshold, kmsKeys, rootTokenRecipients } = ceremony;
  return [
    'THE DAY OF A CUSTODY CEREMONY',
    '',
    `Generation ${generation}: any ${kmsThreshold} of ${kmsKeys.length} custody keys open the master key.`,
    ...wrap('Any one of the recipients alone opens the root token.', COLUMNS),
    '',
    'Digest of the ceremony (SHA-384)',
    ...digestRows(ceremonyDigest(ceremony).toString('hex')),
    ...(forEnclaves ? ['', 'PCR17 of an image with this ceremony', ...digestRows(ceremonyRegister(ceremony))] : []),
    '',
    'PEOPLE. No one has two of the roles participant, custodian and witness.',
    '',
    person('LEAD', 'keeps the record'),
    ...kmsKeys.flatMap(({ arns }, at) => [
      person(`CUSTODIAN ${at + 1}`, `custody key ${at + 1}:`),
      ...arns.map((arn) => `      ${arn}`),
    ]),
    ...rootTokenRecipients.flatMap((recipient, at) => [
      person(`PARTICIPANT ${at + 1}`, `recipient ${at + 1}:`),
      `      ${recipient}`,
    ]),
    person('OPERATOR', 'starts the signers'),
    person('WITNESS', 'compares, and signs'),
    '',
    ...wrap(
      'Everybody has this on paper. The lead announces each step, and records it before the next begins. Tick a box when ' +
        'you saw that it is done. When a step does not go as it says, stop: the page "Taking part in a custody ceremony" ' +
        'says what to do.',
      COLUMNS,
    ),
  ];
}

function person(role: string, what: string): string {
  return `  ${role.padEnd(14)} ${LINE_TO_WRITE_ON}  ${what}`;
}

function digestRows(digest: string): string[] {
  const groups = groupedDigits(digest).split(' ');
  const rows: string[] = [];
  for (let at = 0; at < groups.length; at += GROUPS_IN_A_ROW) {
    const row = groups.slice(at, at + GROUPS_IN_A_ROW).join('  ');
    rows.push(`  ${String(at + 1).padStart(2)}  ${row}  [ ]`);
  }
  return rows;
}

function beginning({ kmsKeys, rootTokenRecipients }: Ceremony, { file, forEnclaves }: Day): Step {
  const introduce = (name: string, role: string, ...more: readonly string[]) =>
    record('person', `--name "${name}" --role ${role}`, ...more);
  const seen = '--identified-by "passport, seen by the witness"';
  return {
    title: 'Begin the record, and introduce everybody',
    boxes: [
      ['WITNESS', 'saw an identity document of each person'],
      ['WITNESS', 'said the time on a watch of their own'],
      ['LEAD', 'recorded every person'],
    ],
    commands: [
      record(
        'start',
        `--ceremony ${shellWord(file)}`,
        '--title "Custody ceremony"',
        ...(forEnclaves ? [] : ['--signers hosts']),
      ),
      introduce('LEAD', 'lead', seen),
      ...kmsKeys.map((_, at) => introduce(`CUSTODIAN ${at + 1}`, 'custodian', `--custody-key ${at + 1}`, seen)),
      ...rootTokenRecipients.map((_, at) =>
        introduce(`PARTICIPANT ${at + 1}`, 'participant', `--recipient ${at + 1}`, seen),
      ),
      introduce('OPERATOR', 'operator', seen),
      introduce('WITNESS', 'witness'),
      deed('WITNESS', 'said-time', '--text "By my watch it is __:__ UTC."'),
    ],
  };
}

function digestStep({ file }: Day): Step {
  return {
    title: 'Compare the digest of the ceremony with the one on your paper',
    boxes: [
      ['EVERYBODY', 'compared all twelve groups'],
      ['CUSTODIANS', 'found the ARN of their own key'],
      ['PARTICIPANTS', 'found their own recipient'],
      ['WITNESS', 'compared it with the digest that they brought'],
    ],
    commands: [`strongroom ceremony plan ${shellWord(file)}`, deed('WITNESS', 'compared-digest')],
  };
}

function imageStep({ previousCeremony }: Ceremony, { forEnclaves }: Day): Step {
  const configuration = record('file', '--path strongroom.yaml --holds configuration', '--about "of the signers"');
  if (!forEnclaves)
    return {
      title: 'Show the configuration of the signers',
      boxes: [['OPERATOR', 'showed it']],
      commands: [configuration],
    };
  return {
    title: 'Show the image and the configuration',
    boxes: [
      ['OPERATOR', 'showed pcrs.json'],
      ['WITNESS', 'compared PCR0, 1, 2 and 16 with a source of their own'],
    ],
    commands: [
      // It made the key that the new image opens.
      ...(previousCeremony === undefined ? [] : [record('pcrs', '--pcrs previous-pcrs.json')]),
      record('pcrs', '--pcrs pcrs.json'),
      deed('WITNESS', 'compared-pcrs'),
      configuration,
    ],
  };
}

function grantStep({ kmsKeys }: Ceremony, { forEnclaves }: Day): Step {
  return {
    title: `Grant kms:Encrypt to the ${forEnclaves ? 'user of the tables' : 'role of the signers'}, on your own key`,
    boxes: kmsKeys.map((_, at) => [`CUSTODIAN ${at + 1}`, 'granted it, and said so'] as const),
    commands: kmsKeys.map((_, at) => deed(`CUSTODIAN ${at + 1}`, 'granted-encrypt')),
  };
}

/** The first ceremony makes the root token; a later one leaves it as it is. */
function startStep({ generation }: Ceremony): Step {
  const started = ['OPERATOR', 'started every signer'] as const;
  if (generation > 1) return { title: 'Start the signers: they rotate', boxes: [started], commands: [] };
  return {
    title: 'Start the signers on empty tables, and read the row of the root token',
    boxes: [started, ['OPERATOR', 'read ROOT_TOKEN_BOOTSTRAP into row.json']],
    commands: [record('file', '--path row.json --holds root-token-row', '--about "as it was read"')],
  };
}

function revokeStep({ kmsKeys }: Ceremony): Step {
  return {
    title: 'Revoke kms:Encrypt, on your own key',
    boxes: [
      ...kmsKeys.map((_, at) => [`CUSTODIAN ${at + 1}`, 'revoked it, and said so'] as const),
      ['WITNESS', 'looked at the policy of every custody key'],
    ],
    commands: [
      ...kmsKeys.map((_, at) => deed(`CUSTODIAN ${at + 1}`, 'revoked-encrypt')),
      deed('WITNESS', 'saw-policies'),
    ],
  };
}

function openStep({ rootTokenRecipients }: Ceremony): Step {
  return {
    title: 'One participant opens the root token, on a machine that is offline',
    boxes: [
      ...rootTokenRecipients.map((_, at) => [`PARTICIPANT ${at + 1}`, 'opened it, if it is they who do'] as const),
      ['EVERYBODY', 'watched the person, and not the screen'],
    ],
    commands: [
      '(umask 077; jq -r .Item.value.S row.json | age -d -i IDENTITY > root-token)',
      deed('PARTICIPANT 1', 'opened-root-token'),
    ],
  };
}

function originStep(): Step {
  return {
    title: 'Show who made the master key',
    boxes: [
      ['EVERYBODY', 'its time is of this day, PCR0, 1 and 2 are those of step 3'],
      ['EVERYBODY', 'its ceremony digest is the one above'],
    ],
    commands: [
      'strongroom operator status --pcrs pcrs.json --token @root-token --json \\\n    > status.json',
      record('master-key', '--status status.json', '--deployment DEPLOYMENT --network 0xROOT'),
    ],
  };
}

function useStep(): Step {
  return {
    title: 'Use the root token once, and revoke it',
    boxes: [
      ['OPERATOR', 'made a management token for each administrator'],
      ['OPERATOR', 'revoked the root token'],
      ['PARTICIPANTS', 'destroyed row and token on every stick and machine'],
    ],
    commands: [
      'strongroom operator auth token create --management --ttl 90d \\\n    --token @root-token',
      'strongroom operator auth token revoke --accessor ACCESSOR --token @own-token',
      deed('OPERATOR', 'revoked-root-token'),
    ],
  };
}

function endStep(): Step {
  return {
    title: 'Say what the record still lacks, objections too; then end it',
    boxes: [
      ['EVERYBODY', 'said what there was to say'],
      ['EVERYBODY', 'copied the head from the screen to this paper'],
    ],
    blanks: ['Head', ...Array.from({ length: HEAD_ROWS }, () => Array(GROUPS_IN_A_ROW).fill('_'.repeat(8)).join('  '))],
    commands: [
      `strongroom ceremony transcript verify ${TRANSCRIPT_FILE} --unfinished`,
      record('end', '--by "LEAD"'),
      broken([`strongroom ceremony transcript page ${TRANSCRIPT_FILE}`, '--output transcript.html']),
    ],
  };
}

function signStep(): Step {
  return {
    title: 'Sign the page',
    boxes: [
      ['EVERYBODY', 'the head on the page is the one on this paper'],
      ['EVERYBODY', 'signed, with the last eight digits of the head by hand'],
      ['EVERYBODY', `took a copy of ${TRANSCRIPT_FILE} and of the page`],
    ],
    commands: [],
  };
}

function record(kind: string, ...parts: readonly string[]): string {
  return broken([`strongroom ceremony record ${kind} ${TRANSCRIPT_FILE}`, ...parts]);
}

function deed(by: string, did: string, ...more: readonly string[]): string {
  return record('statement', `--by "${by}" --did ${did}`, ...more);
}

/** A shell reads the lines as one. */
function broken(parts: readonly string[]): string {
  const MAX_CHARACTERS = COLUMNS - '  $ '.length - ' \\'.length;
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = last === undefined ? part : `${last} ${part}`;
    if (last === undefined) lines.push(part);
    else if (joined.length <= MAX_CHARACTERS) lines[lines.length - 1] = joined;
    else lines.push(`    ${part}`);
  }
  return lines.join(' \\\n');
}

function stepLines({ title, boxes, commands, blanks = [] }: Step, number: number): string[] {
  return [
    `${number}. ${title}`,
    ...boxes.map(([who, what]) => `  [ ] ${who.padEnd(14)} ${what}`),
    ...commands.flatMap((text) => text.split('\n').map((line, at) => (at === 0 ? `  $ ${line}` : `  ${line}`))),
    ...blanks.map((line) => `      ${line}`),
  ];
}
