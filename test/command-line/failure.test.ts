// What the programs say beside their data: at a terminal in lines of its width, to a pipe in whole ones; and always
// what to do next.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main as ceremony } from '../../ceremony/main.ts';
import { AWS_NITRO } from '../../common/attestation/contract.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { note, type Piped } from '../../common/command-line/terminal.ts';
import { wrapFor } from '../../common/command-line/wrap.ts';
import { main as eif } from '../../eif/main.ts';
import { runOperator } from '../../operator/main.ts';
import { runSlashingCommand } from '../../service/commands/slashing.ts';
import { main as setup } from '../../setup/main.ts';
import { keyArn } from '../config/loading.ts';

const COLUMNS = 80;
const ARN = 'arn:aws:iam::111122223333:role/a-role';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-said-'));
  writeFileSync(join(folder, 'c.yaml'), `network: mainnet\nanti_slashing: {path: ${folder}/slashing.sqlite}\n`);
  const keys = `kms_treshold: 1\nkms_keys: [{arns: ["${keyArn(1)}"], arn: x}]\n`;
  writeFileSync(join(folder, 'ceremony.yaml'), `generation: 1\n${keys}root_token_recipients: []\n`);
});

afterAll(() => rmSync(folder, { recursive: true }));

const PROGRAMS: Readonly<Record<string, (argv: readonly string[], terminal: Piped) => Promise<number>>> = {
  ceremony: (argv, terminal) => ceremony(argv, terminal as Parameters<typeof ceremony>[1]),
  eif,
  operator: (argv, terminal) => runOperator(argv, terminal as Parameters<typeof runOperator>[1], AWS_NITRO),
  setup,
  slashing: runSlashingCommand,
};

/** What goes to stderr. @param columns of a terminal; undefined: of a pipe */
async function said(command: string, columns?: number): Promise<string> {
  const [program = '', ...argv] = command.replaceAll('@', `${folder}/`).split(' ');
  let text = '';
  const stderr = {
    write: (part: string) => (text += part),
    ...(columns === undefined ? {} : { isTTY: true, columns }),
  };
  const terminal = { env: {}, stdin: Readable.from([]), stdout: { write: () => true }, stderr };
  expect(await PROGRAMS[program]?.(argv, terminal as unknown as Piped)).not.toBe(0);
  return text;
}

const words = (text: string) => text.split(/\s+/);

describe('at a terminal of 80 columns, and in a pipe the same in whole lines', () => {
  it.each([
    'ceremony seal',
    'ceremony plan @none.yaml',
    'ceremony plan @ceremony.yaml',
    'eif describe @an-image-that-is-not-there-and-has-a-name-that-is-quite-long.eif',
    'eif build --image a --ceremony b',
    'operator status --signer-url http://127.0.0.1:1 --token secret',
    `setup kms-policy -c @c.yaml --administrator ${ARN} --signer ${ARN} --pcrs pcrs.json`,
    'setup tables -c @c.yaml --prnt',
    'slashing bogus',
    'slashing import @none.json -c @c.yaml',
  ])('%s', async (command) => {
    const [shown, piped] = [await said(command, COLUMNS), await said(command)];
    // A line of the log has the time, and is a record.
    const [own, whole] = [shown, piped].map((text) => text.replaceAll(/^\d{4}-\d{2}-\d{2}T.*\n/gm, '')) as [
      string,
      string,
    ];
    expect(own.split('\n').filter((line) => line.length > COLUMNS && line.trim().includes(' '))).toEqual([]);
    expect(words(own)).toEqual(words(whole));
    expect(own.split('\n').length).toBeGreaterThanOrEqual(whole.split('\n').length);
  });

  it('warns of a token that others can see', async () => {
    expect(await said('operator status --signer-url https://127.0.0.1:1 --token secret', COLUMNS)).toMatch(
      /^warning: --token holds the token itself.*\n[^\n]*env:VAR, @FILE or -\n/,
    );
  });
});

describe('wrong usage says what to do next', () => {
  it.each([
    ['ceremony open-root-token --identity eve.age', 'see strongroom ceremony open-root-token --help'],
    ['ceremony recrod start', 'did you mean record?'],
    ['ceremony record strat', 'did you mean start?'],
    ['eif build', 'see strongroom eif build --help'],
    ['eif compare a', 'see strongroom eif compare --help'],
    ['eif buld', 'did you mean build?'],
    ['setup tables', 'see strongroom setup tables --help'],
    ['setup kms-polcy', 'did you mean kms-policy?'],
    ['slashing improt', 'did you mean import?'],
    ['slashing status', 'see strongroom slashing status --help'],
  ])('%s', async (command, advice) => {
    expect(await said(command)).toContain(advice);
  });

  it('of a ceremony: an option that does not exist', async () => {
    const text = await said('ceremony plan @ceremony.yaml');
    expect(text).toContain('  kms_treshold is not an option: did you mean kms_threshold?\n');
    expect(text).toContain('  kms_keys[0].arn is not an option: did you mean arns?\n');
  });
});

describe('a file that cannot be used is named, with what to do', () => {
  it.each([
    ['slashing import @none.json -c @c.yaml', 'cannot be read (ENOENT): there is no such file or folder'],
    ['slashing import @ -c @c.yaml', 'cannot be read (EISDIR): this is a folder: name a file'],
    ['slashing export --output @none/a -c @c.yaml', 'cannot be written (ENOENT); there is no such file or folder'],
    ['slashing export --output @ -c @c.yaml', 'cannot be written (EISDIR); this is a folder: name a file'],
    ['slashing status -c @none.yaml', 'there is no such file or folder: correct the path'],
    ['ceremony plan @', 'cannot be read (EISDIR): this is a folder: name a file'],
    ['ceremony transcript verify @', 'cannot be read (EISDIR): this is a folder: name a file'],
  ])('%s', async (command, problem) => {
    const text = await said(command);
    expect(text).toContain(problem);
    expect(text).not.toMatch(/no such file or directory|illegal operation/);
  });
});

describe('lines for a terminal', () => {
  const at = { isTTY: true, columns: 40 };
  const digest = 'f'.repeat(96);

  it('stand behind the indent of their line, and leave whole what is copied', () => {
    expect(wrapFor(at, `  the digest of the ceremony that was given here is ${digest} and no other`)).toEqual([
      '  the digest of the ceremony that was',
      '  given here is',
      `  ${digest}`,
      '  and no other',
    ]);
    expect(wrapFor({ columns: 40 }, `a ${digest} b`)).toEqual([`a ${digest} b`]);
  });

  it('a note ends with what is copied, by itself where the line has no room', () => {
    const groups = '0123 4567 89ab cdef 0123 4567 89ab cdef';
    const write = (stream: object): string => {
      let text = '';
      note({ stderr: { ...stream, write: (part) => (text += part) } }, 'its digest:', groups);
      return text;
    };
    expect(write(at)).toBe(`its digest:\n${groups}\n`);
    expect(write({})).toBe(`its digest: ${groups}\n`);
  });

  it('a failure has its remedies behind an indent', () => {
    let text = '';
    sayFailure({ stderr: { ...at, write: (part) => (text += part) } }, 'strongroom', 'it is not there', [
      'make it before you look for it, or look elsewhere',
    ]);
    expect(text).toBe('strongroom: it is not there\n  make it before you look for it, or\n  look elsewhere\n');
  });
});
