// `strongroom ceremony open-root-token`, offline. The token goes to stdout and nowhere else; no input is repeated.

import { command } from '../../common/command-line/program.ts';
import { type OpenedRootToken, readRootToken } from '../root-token-opening.ts';
import { type CeremonyTerminal, CommandError } from './command.ts';
import { openWith, readIdentityFile } from './identity-file.ts';
import { readCeremonyInput } from './input.ts';

export const openRootTokenCommand = command(
  {
    summary: 'Decrypt the root token of a ROOT_TOKEN_BOOTSTRAP row, offline',
    flags: {
      identity: {
        placeholder: 'FILE',
        required: true,
        meaning:
          'age X25519 identities, one a line, as "strongroom ceremony keygen" and age-keygen write them; those under a ' +
          'passphrase, or of an age plugin, are opened by the program age, which asks here',
      },
      row: {
        placeholder: 'FILE',
        required: true,
        meaning: 'The row as "aws dynamodb get-item" prints it, or its armored value alone; - is stdin',
      },
    },
    examples: [
      'strongroom ceremony open-root-token --identity alice.age --row row.json',
      `aws dynamodb get-item --table-name strongroom-state --key '{"pk":{"S":"ROOT_TOKEN_BOOTSTRAP"}}' |\n` +
        '  strongroom ceremony open-root-token --identity alice.age --row -',
    ],
  },

  async ({ values: { identity, row } }, terminal: CeremonyTerminal) => {
    const identities = await readIdentityFile(identity, terminal);
    const armored = armoredOf(await readCeremonyInput(row, terminal));
    const opened = readRootToken(await openWith(identities, armored, terminal));
    if (!opened.ok) throw new CommandError(REFUSALS[opened.refusal]);
    terminal.stdout.write(`${opened.token}\n`);
  },
);

const REFUSALS: Readonly<Record<Extract<OpenedRootToken, { ok: false }>['refusal'], string>> = {
  not_armored: 'the row has no armored age text: give the whole row, or its value from the first dash to the last',
  not_for_identity: 'the root token was not encrypted to this identity: use that of a root_token_recipient',
  damaged: 'the age text is damaged: read the row again',
  not_a_root_token:
    'the row decrypts to something that is not a root token: somebody else wrote it; delete the row and restart every replica, then read it again',
};

const FETCH_IT = 'fetch it with aws dynamodb get-item, as --help shows';
const START_FIRST = 'Has a signer started with this table?';

function armoredOf(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text;
  }
  const item = member(parsed, 'Item') ?? parsed;
  const pk = member(member(item, 'pk'), 'S');
  if (pk !== undefined && pk !== 'ROOT_TOKEN_BOOTSTRAP') {
    throw new CommandError(`the row is not ROOT_TOKEN_BOOTSTRAP: ${FETCH_IT}`);
  }
  const value = typeof item === 'string' ? item : member(member(item, 'value'), 'S');
  if (typeof value !== 'string')
    throw new CommandError(
      `the row has no value: it is absent, or not ROOT_TOKEN_BOOTSTRAP. ${START_FIRST} If so, ${FETCH_IT}`,
    );
  return value;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
