// `strongroom ceremony record` and `ceremony transcript` as the keeper of the record uses them, and whoever verifies
// it.

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { main } from '../../ceremony/main.ts';
import { ceremonyRegister } from '../../ceremony/transcript/meaning.ts';
import { keyArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const BLOCK = {
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  root_token_recipients: [RECIPIENT],
};
const MEASUREMENTS = {
  HashAlgorithm: 'Sha384 { ... }',
  PCR0: 'A'.repeat(96),
  PCR17: ceremonyRegister(parseCeremony(BLOCK)),
};

let folder: string;
const at = (name: string): string => join(folder, name);

async function run(argv: readonly string[], input = '') {
  const said = { stdout: '', stderr: '' };
  const to = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (said[name] += text) });
  const stdin = (async function* () {
    yield Buffer.from(input);
  })();
  const code = await main(argv, { env: {}, stdin, stdout: to('stdout'), stderr: to('stderr') });
  return { code, ...said };
}

/** A line that is added. @returns its digest */
async function record(kind: string, args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await run(['record', kind, at('t.jsonl'), ...args], input);
  if (code !== 0) throw new Error(stderr);
  const [, digest = ''] = /^\d+ ([0-9a-f]{64})\n$/.exec(stdout) ?? [];
  const last =
    readFileSync(at('t.jsonl'), 'utf8')
      .split(/(?<=\n)/)
      .at(-1) ?? '';
  expect(digest).toBe(createHash('sha256').update(last).digest('hex'));
  expect(stderr).toContain(digest.match(/.{8}/g)?.join(' '));
  return digest;
}

const verify = (...args: readonly string[]) => run(['transcript', 'verify', at('t.jsonl'), '--incomplete', ...args]);

let noted: string;
let head: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-record-'));
  writeFileSync(at('ceremony.yaml'), JSON.stringify(BLOCK));
  writeFileSync(at('other.yaml'), JSON.stringify({ ...BLOCK, generation: 2 }));
  writeFileSync(at('pcrs.json'), JSON.stringify({ Measurements: MEASUREMENTS }));
  writeFileSync(at('others.json'), JSON.stringify({ measurements: { ...MEASUREMENTS, PCR0: 'b'.repeat(96) } }));
  writeFileSync(at('image.eif'), 'an image');
  await record('start', ['--ceremony', at('ceremony.yaml'), '--title', 'Custody ceremony', '--place', 'Room 4']);
  await record('person', ['--name', 'Lea', '--role', 'lead', '--organization', 'Stake AG']);
  noted = await record('person', ['--name', 'Alice', '--role', 'participant', '--recipient', '1']);
  await record('statement', ['--by', 'Alice', '--text', '-'], 'First.\r\nSecond.\r\n');
  await record('file', ['--path', at('image.eif'), '--about', 'the image']);
  await record('pcrs', ['--pcrs', at('pcrs.json')]);
});
afterAll(() => rmSync(folder, { recursive: true }));

it('a record that goes on is verified only for whoever says so, and makes a draft', async () => {
  expect(await verify()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('has no end') });
  expect(await verify('--unfinished')).toMatchObject({ code: 0, stdout: expect.stringContaining('has NOT ended') });
  const draft = await run(['transcript', 'page', at('t.jsonl'), '--output', at('draft.html')]);
  expect({ code: draft.code, page: readFileSync(at('draft.html'), 'utf8') }).toMatchObject({
    code: 0,
    page: expect.stringContaining('DRAFT'),
  });
});

it.each<[string, string[], string]>([
  ['an unknown role', ['person', '--name', 'B', '--role', 'boss'], '--role is one of lead, custodian, participant'],
  [
    'a recipient that is none',
    ['person', '--name', 'B', '--role', 'witness', '--recipient', '2'],
    'its number, 1 to 1',
  ],
  ['a statement of a stranger', ['statement', '--by', 'Bob', '--text', 'x'], 'whom no line before introduces'],
  [
    'a file that is not there',
    ['file', '--path', '/nonexistent', '--about', 'x'],
    '/nonexistent cannot be opened (ENOENT)',
  ],
  ['a pcrs.json that is not there', ['pcrs', '--pcrs', '/nonexistent'], 'no such file or folder: correct the path'],
  ['a pcrs.json that is none', ['pcrs', '--pcrs', 'CEREMONY'], 'has no object "measurements"'],
  ['a line without what it needs', ['statement', '--by', 'Alice'], '--text TEXT is needed'],
])('%s is refused, and nothing is written', async (_, [kind = '', ...args], words) => {
  const before = readFileSync(at('t.jsonl'));
  const given = args.map((arg) => (arg === 'CEREMONY' ? at('ceremony.yaml') : arg));
  const { code, stdout, stderr } = await run(['record', kind, at('t.jsonl'), ...given]);
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
  expect(readFileSync(at('t.jsonl'))).toEqual(before);
});

it('a transcript that is not there is not begun by a line', async () => {
  const said = await run(['record', 'end', at('absent.jsonl'), '--by', 'Lea']);
  expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining('is not there: begin a transcript with') });
});

it('a transcript that exists is not begun again', async () => {
  const begun = await run(['record', 'start', at('t.jsonl'), '--ceremony', at('ceremony.yaml'), '--title', 'x']);
  expect(begun).toMatchObject({ code: 1, stderr: expect.stringContaining('exists already and is not overwritten') });
});

it('a record that lacks something does not end unasked', async () => {
  const refused = await run(['record', 'end', at('t.jsonl'), '--by', 'Lea']);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('lacks what the day asks for') });
});

describe('a record that has ended', () => {
  beforeAll(async () => {
    head = await record('end', ['--by', 'Lea', '--incomplete']);
  });

  it('has what was said', () => {
    const lines = readFileSync(at('t.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(lines).toMatchObject([
      { number: 1, entry: 'start', title: 'Custody ceremony', place: 'Room 4', signers: 'enclaves', ceremony: BLOCK },
      { number: 2, entry: 'person', name: 'Lea', role: 'lead', organization: 'Stake AG' },
      { number: 3, entry: 'person', name: 'Alice', role: 'participant', recipient: RECIPIENT },
      { number: 4, entry: 'statement', by: 'Alice', text: 'First.\nSecond.' },
      {
        number: 5,
        entry: 'file',
        name: 'image.eif',
        bytes: 8,
        sha256: createHash('sha256').update('an image').digest('hex'),
      },
      { number: 6, entry: 'pcrs', registers: { PCR0: 'a'.repeat(96), PCR17: MEASUREMENTS.PCR17 } },
      { number: 7, entry: 'statement', by: 'Lea', text: 'The record ends, and it is not complete.' },
      { number: 8, entry: 'end', complete: false },
    ]);
  });

  it('is verified against ceremony, PCR values and the head on paper, however that is written', async () => {
    const written = head.toUpperCase().replace(/.{4}/g, '$& ');
    const options = ['--ceremony', at('ceremony.yaml'), '--pcrs', at('pcrs.json'), '--head', written];
    const { code, stdout, stderr } = await verify(...options);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^VERIFIED: .* has 8 lines in an unbroken chain, and its end\n/);
    expect(stdout.match(/^Compared: /gm)).toHaveLength(3);
    expect(stdout).not.toContain('NOT');
  });

  it('says what was not compared', async () => {
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('NOT compared: the head that you noted on paper'),
    });
  });

  it.each<[string, string[], string]>([
    ['another ceremony', ['--ceremony', 'other.yaml'], 'the record is of another ceremony'],
    ['other PCR values', ['--pcrs', 'others.json'], 'differ in PCR0'],
    ['the head of another record', ['--head', 'f'.repeat(64)], 'it is another record, or it was written anew'],
    ['a head that was noted earlier', ['--head', 'NOTED'], 'is that of line 3: the lines after it were added later'],
    ['a head that is mistyped', ['--head', 'abc'], '--head is not 64 hex digits'],
  ])('is not verified with %s', async (_, args, words) => {
    const given = args.map((arg) => (/\.(?:yaml|json)$/.test(arg) ? at(arg) : arg === 'NOTED' ? noted : arg));
    const { code, stdout, stderr } = await verify(...given);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
  });

  it('takes no more lines', async () => {
    const more = await run(['record', 'statement', at('t.jsonl'), '--by', 'Lea', '--text', 'x']);
    expect(more).toMatchObject({ code: 1, stderr: expect.stringContaining('line 9 comes after the end') });
  });

  it('makes a page, which is overwritten by force only', async () => {
    const page = ['transcript', 'page', at('t.jsonl'), '--output', at('page.html')];
    expect(await run(page)).toMatchObject({ code: 0, stderr: expect.stringContaining('page.html has head') });
    expect(readFileSync(at('page.html'), 'utf8')).toContain(head.match(/.{8}/g)?.join(' '));
    expect(await run(page)).toMatchObject({ code: 1, stderr: expect.stringContaining('overwrite it with --force') });
    expect((await run([...page, '--force'])).code).toBe(0);
  });

  it('that was altered is not verified, and makes no page', async () => {
    writeFileSync(at('altered.jsonl'), readFileSync(at('t.jsonl'), 'utf8').replace('Second', 'Second!'));
    const expected = { code: 1, stdout: '', stderr: expect.stringContaining('line 5 does not follow the line before') };
    expect(await run(['transcript', 'verify', at('altered.jsonl')])).toEqual(expected);
    expect(await run(['transcript', 'page', at('altered.jsonl'), '--output', at('altered.html')])).toEqual(expected);
  });
});
