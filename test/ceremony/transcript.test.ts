// The record of a ceremony: whatever happens to its bytes is found, and what it says is shown as text. The head on
// paper finds the rest: an end that was cut off, and a whole file that was written anew.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ceremonyBlock, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import {
  EMPTY_TRANSCRIPT,
  following,
  isFinished,
  MAX_ENTRIES,
  readTranscript,
  type Transcript,
  transcriptHead,
} from '../../ceremony/transcript/chain.ts';
import { type EntryDraft, TRANSCRIPT_FORMAT } from '../../ceremony/transcript/entries.ts';
import { appendToTranscript, newFileOf, readTranscriptFile, startTranscript } from '../../ceremony/transcript/file.ts';
import { ceremonyRegister } from '../../ceremony/transcript/meaning.ts';
import { transcriptPage } from '../../ceremony/transcript/page.ts';
import { keyArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const VECTOR = readFileSync(new URL('../vectors/transcript-v1.jsonl', import.meta.url));
/** As `tail -n 1 transcript-v1.jsonl | sha256sum` has it. */
const VECTOR_HEAD = '46b16c777b90e20c09294944d7fb82983dd2b0d70ffdc33dc79cdb94d04cc2e5';

const CEREMONY = parseCeremony({
  generation: 3,
  kms_threshold: 2,
  kms_keys: [{ arns: [keyArn(1)] }, { arns: [keyArn(2, 'us-east-1')] }],
  root_token_recipients: [RECIPIENT],
});
const START: EntryDraft = {
  entry: 'start',
  format: TRANSCRIPT_FORMAT,
  title: 'Custody ceremony, "mainnet"',
  place: 'Zürich',
  signers: 'enclaves',
  ceremony: structuredClone(ceremonyBlock(CEREMONY)) as Extract<EntryDraft, { entry: 'start' }>['ceremony'],
  ceremony_digest_sha384: ceremonyDigest(CEREMONY).toString('hex'),
};
const PCR0 = 'a'.repeat(96);
const SAID: readonly EntryDraft[] = [
  START,
  { entry: 'person', name: 'Lea Lead', role: 'lead' },
  { entry: 'person', name: 'Alice', role: 'participant', organization: 'Stake AG', recipient: RECIPIENT },
  { entry: 'person', name: 'Carol', role: 'custodian', custody_key: 2 },
  { entry: 'person', name: 'Carol', role: 'custodian', identified_by: 'passport' },
  { entry: 'statement', by: 'Alice', text: 'Two lines:\nand “quotes”, back\\slash' },
  { entry: 'file', name: 'image.eif', about: 'the image', bytes: 7, sha256: 'b'.repeat(64), sha384: 'c'.repeat(96) },
  { entry: 'pcrs', registers: { PCR0, PCR17: ceremonyRegister(CEREMONY) } },
  { entry: 'statement', by: 'Carol', did: 'granted_encrypt', text: 'I granted kms:Encrypt on custody key 2.' },
  {
    entry: 'file',
    name: 'strongroom.yaml',
    about: 'of the signers',
    holds: 'configuration',
    bytes: 8,
    sha256: 'd'.repeat(64),
    sha384: 'e'.repeat(96),
  },
  { entry: 'statement', by: 'Lea Lead', text: 'The record ends, and it is not complete.' },
  { entry: 'end', complete: false },
];
const at = (minute: number): Date => new Date(Date.UTC(2026, 10, 22, 10, minute, 0, 999));

function written(said: readonly EntryDraft[]): { readonly bytes: Buffer; readonly transcript: Transcript } {
  let transcript: Transcript = EMPTY_TRANSCRIPT;
  const parts: Buffer[] = [];
  for (const [minute, one] of said.entries()) {
    const next = following(transcript, one, at(minute));
    if (!next.ok) throw new Error(`line ${next.line} ${next.problem}`);
    parts.push(next.bytes);
    transcript = next;
  }
  return { bytes: Buffer.concat(parts), transcript };
}

function problemOf(bytes: Uint8Array): string | undefined {
  const read = readTranscript(bytes);
  if (!read.ok) return `line ${read.line} ${read.problem}`;
  return isFinished(read) ? undefined : 'has not ended';
}

const linesOf = (bytes: Buffer): string[] => bytes.toString().split(/(?<=\n)/);

describe('a transcript', () => {
  it('has the bytes of its specification', () => {
    const { bytes, transcript } = written(SAID);
    expect(bytes.toString()).toBe(VECTOR.toString());
    expect(transcriptHead(transcript)).toBe(VECTOR_HEAD);
    const last = linesOf(VECTOR).at(-1) ?? '';
    expect(createHash('sha256').update(last).digest('hex')).toBe(VECTOR_HEAD);
    expect(readTranscript(VECTOR)).toEqual({ ok: true, entries: transcript.entries, digests: transcript.digests });
  });

  it('is refused with any byte of it flipped', () => {
    const positions = Array.from(VECTOR.keys());
    const unprotected = positions.filter((position) => {
      const flipped = Buffer.from(VECTOR);
      flipped[position] = (flipped[position] ?? 0) ^ 1;
      return problemOf(flipped) === undefined;
    });
    expect(unprotected).toEqual([]);
  });

  it('is refused wherever it is cut off', () => {
    const lengths = Array.from(VECTOR.keys());
    expect(lengths.filter((length) => problemOf(VECTOR.subarray(0, length)) === undefined)).toEqual([]);
  });

  it('is refused with a line removed, repeated, moved or inserted', () => {
    const lines = linesOf(VECTOR);
    for (const [index, line] of lines.entries()) {
      const variants = [
        lines.toSpliced(index, 1),
        lines.toSpliced(index, 0, line),
        lines.toSpliced(index, 0, '\n'),
        lines.toSpliced(index, 0, '{}\n'),
        ...(index === 0 ? [] : [lines.toSpliced(index - 1, 2, line, lines[index - 1] ?? '')]),
      ];
      for (const variant of variants) expect(problemOf(Buffer.from(variant.join('')))).toMatch(/line \d|has not ended/);
    }
  });

  it('is refused with a line whose number fits and whose link does not', () => {
    const other = linesOf(written(SAID.with(5, { entry: 'statement', by: 'Alice', text: 'Something else' })).bytes);
    const lines = linesOf(VECTOR).with(5, other[5] ?? '');
    expect(problemOf(Buffer.from(lines.join('')))).toMatch(/line 7 does not follow the line before/);
  });

  it('that was written anew is whole, and has another head', () => {
    const anew = written(SAID.with(5, { entry: 'statement', by: 'Alice', text: 'Something else' }));
    expect(problemOf(anew.bytes)).toBeUndefined();
    expect(transcriptHead(anew.transcript)).not.toBe(VECTOR_HEAD);
  });

  it.each([
    ['spaces', (line: string) => line.replace(':', ': ')],
    ['members in another order', (line: string) => line.replace(/^\{("at":"[^"]+"),(.*)\}\n$/, '{$2,$1}\n')],
    ['an escape that is not needed', (line: string) => line.replace('Lea', '\\u004cea')],
    ['a member twice', (line: string) => line.replace('{', '{"entry":"person",')],
    ['a member more', (line: string) => line.replace('"entry"', '"extra":1,"entry"')],
    ['CRLF', (line: string) => line.replace('\n', '\r\n')],
    ['a number that is written otherwise', (line: string) => line.replace('"number":2', '"number":2.0')],
  ])('is refused with %s, also where no later line tells', (_, change) => {
    const [start = '', person = ''] = linesOf(VECTOR);
    expect(change(person)).not.toBe(person);
    expect(problemOf(Buffer.from(start + change(person)))).toMatch(/^line 2 is no|^line 2 is not in canonical form/);
  });
});

describe('an entry is refused that', () => {
  const statement = (text: string, by = 'Alice'): EntryDraft => ({ entry: 'statement', by, text });
  const alice: EntryDraft = { entry: 'person', name: 'Alice', role: 'participant', recipient: RECIPIENT };
  const custodian = (name: string, key: number): EntryDraft => ({
    entry: 'person',
    name,
    role: 'custodian',
    custody_key: key,
  });
  const witness = (name: string): EntryDraft => ({ entry: 'person', name, role: 'witness' });
  it.each<[string, readonly EntryDraft[], string]>([
    ['begins nothing', [alice], 'the first line, and no other, is the start'],
    ['begins again', [START, START], 'the first line, and no other, is the start'],
    ['is said by nobody', [START, statement('x')], 'whom no line before introduces'],
    ['introduces somebody again', [START, alice, alice], 'whom a line before introduces already'],
    ['adds nothing', [START, witness('Wanda'), witness('Wanda')], 'whom a line before introduces already'],
    [
      'gives somebody another role',
      [START, witness('Wanda'), { ...witness('Wanda'), role: 'lead', organization: 'Stake AG' } as EntryDraft],
      'whom a line before introduces already',
    ],
    [
      'replaces what a line before says of somebody',
      [
        START,
        { ...witness('Wanda'), organization: 'Stake AG' } as EntryDraft,
        { ...witness('Wanda'), organization: 'Audit Ltd' } as EntryDraft,
      ],
      'whom a line before introduces already',
    ],
    [
      'gives a custody key to no custodian',
      [START, { ...witness('Wanda'), custody_key: 1 } as EntryDraft],
      'who is no custodian',
    ],
    ['has a custody key too many', [START, custodian('Carol', 3)], 'a custody key that the ceremony has not'],
    ['gives a custody key twice', [START, custodian('Carol', 1), custodian('Dave', 1)], 'has its custodian already'],
    [
      'says a deed of another role',
      [START, alice, { entry: 'statement', by: 'Alice', did: 'compared_digest', text: 'x' }],
      'somebody who is no witness',
    ],
    [
      'grants for no key',
      [
        START,
        { entry: 'person', name: 'Carol', role: 'custodian' },
        { entry: 'statement', by: 'Carol', did: 'granted_encrypt', text: 'x' },
      ],
      'a custodian of no custody key',
    ],
    [
      'opens the root token for no recipient',
      [
        START,
        { entry: 'person', name: 'Bob', role: 'participant' },
        { entry: 'statement', by: 'Bob', did: 'opened_root_token', text: 'x' },
      ],
      'a participant with no recipient',
    ],
    ['calls complete what is not', [START, alice, { entry: 'end', complete: true }], 'lacks what the day asks for'],
    ['gives a recipient twice', [START, alice, { ...alice, name: 'Bob' }], 'another person’s already'],
    [
      'has another recipient',
      [START, { ...alice, recipient: 'age1kgyyvxvsdftt6f26wwfx7xh9sv8jddhp032tltaf2g967kk9c94sw5vzm3' }],
      'a recipient that the ceremony has not',
    ],
    ['has another ceremony’s PCR17', [START, { entry: 'pcrs', registers: { PCR0, PCR17: PCR0 } }], 'PCR17'],
    ['names no image', [START, { entry: 'pcrs', registers: { PCR17: ceremonyRegister(CEREMONY) } }], 'no PCR0'],
    ['is of debug mode', [START, { entry: 'pcrs', registers: { PCR0: '0'.repeat(96) } }], 'zeros in PCR0'],
    ['has another ceremony’s digest', [{ ...START, ceremony_digest_sha384: PCR0 }], 'not that of its ceremony'],
    ['has an escape sequence', [START, alice, statement('\u001b[2J')], 'text must have no control characters'],
    ['turns the writing direction', [START, { ...alice, name: 'ecilA\u202e' }], 'name must be one line'],
    ...[
      ['a no-break blank', 'Alice\u00a0Ace', 'Alice Ace'],
      ['another case', 'ALICE', 'Alice'],
      ['decomposed letters', 'Ame\u0301lie', 'Am\u00e9lie'],
      ['a joiner inside', 'Ali\u200dce', 'Alice'],
      ['a variation selector', 'Alice\ufe0f', 'Alice'],
      ['full-width letters', '\uff21lice', 'Alice'],
      ['Cyrillic letters', '\u0421\u043e\u0441\u043e', 'Coco'],
      ['Cyrillic capitals', '\u041d\u0410\u041d\u0410', 'HAHA'],
      ['a Cyrillic letter with a mark', '\u0430\u0451\u0430', 'A\u00eba'],
      ['Greek letters', '\u0391\u03bd\u03bd\u03b1', 'Anna'],
      ['another hyphen', 'Ann\u2011Lee', 'Ann-Lee'],
      ['another apostrophe', 'O\u2019Neil', "O'Neil"],
      ['a dotless i', 'Al\u0131ce', 'Alice'],
    ].map(([how = '', one = '', other = '']): [string, EntryDraft[], string] => [
      `has ${how} for the name of another`,
      [START, witness(other), witness(one)],
      'looks like that of somebody before',
    ]),
    ['mixes scripts', [START, witness('\u0410lice')], 'must not mix Latin letters'],
    ['has a name that is not seen', [START, witness('\u3164')], 'letters that can be seen'],
    ['has a name of punctuation', [START, witness('...')], 'letters that can be seen'],
    ['has the blank of Braille in a name', [START, witness('Alice\u2800Ace')], 'drawn as nothing'],
    ['has a code point that is none in a name', [START, witness('Alice\u0378')], 'drawn as nothing'],
    ['has a name of two lines', [START, { ...alice, name: 'Alice\nLead' }], 'name must be one line'],
    ['is too long', [START, alice, statement('x'.repeat(4001))], 'at most 4000'],
    ['comes after the end', [START, { entry: 'end', complete: false }, alice], 'comes after the end'],
  ])('%s', (_, said, words) => {
    expect(() => written(said)).toThrow(words);
  });

  it('is older than the one before', () => {
    const { transcript } = written([START, alice]);
    expect(following(transcript, statement('x'), at(0))).toMatchObject({
      ok: false,
      problem: 'is of 2026-11-22T10:00:00Z, before the line before, 2026-11-22T10:01:00Z',
    });
  });

  it('is one too many', () => {
    const full: Transcript = {
      entries: Array.from({ length: MAX_ENTRIES }, () => written([START]).transcript.entries[0] as never),
      digests: [VECTOR_HEAD],
    };
    expect(following(full, { entry: 'end', complete: false }, at(0))).toMatchObject({
      problem: expect.stringContaining('at most 4096'),
    });
  });
});

describe('a transcript’s file', () => {
  let folder: string;
  let file: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'strongroom-transcript-'));
    file = join(folder, 'transcript.jsonl');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is begun once, also by writers that begin at once, and never replaced', async () => {
    const beginnings = await Promise.all([1, 2, 3, 4].map(() => startTranscript(file, START, at(0))));
    expect(beginnings.filter(({ ok }) => ok)).toHaveLength(1);
    const begun = readFileSync(file);
    expect(await startTranscript(file, START, at(1))).toEqual({ ok: false, refusal: 'exists' });
    expect(readFileSync(file)).toEqual(begun);
    expect(existsSync(newFileOf(file))).toBe(false);
  });

  it('is not forked by writers that write at once: each adds its line, or is told that another one writes', async () => {
    const names = Array.from({ length: 8 }, (_, number) => `Person ${number}`);
    const results = await Promise.all(
      names.map((name) => appendToTranscript(file, [{ entry: 'person', name, role: 'witness' }], at(1))),
    );
    const added = results.filter(({ ok }) => ok).length;
    expect(added).toBeGreaterThan(0);
    expect(results.filter((result) => !result.ok && (!('refusal' in result) || result.refusal !== 'busy'))).toEqual([]);
    const read = readTranscript(readFileSync(file));
    expect(read.ok && read.entries).toHaveLength(1 + added);
    expect(existsSync(newFileOf(file))).toBe(false);
  });

  it('that is too large is refused without reading all of it', async () => {
    expect(await readTranscriptFile('/dev/zero')).toMatchObject({ ok: false, line: 0, problem: 'is too large' });
  });

  it('stays as it was where a writer was interrupted, where an entry is refused, and where it is broken', async () => {
    const before = readFileSync(file);
    writeFileSync(newFileOf(file), 'half a li');
    const witness: EntryDraft = { entry: 'person', name: 'Wanda', role: 'witness' };
    expect(await appendToTranscript(file, [witness], at(2))).toEqual({ ok: false, refusal: 'busy' });
    rmSync(newFileOf(file));
    const unknown: EntryDraft = { entry: 'statement', by: 'Nobody', text: 'x' };
    expect(await appendToTranscript(file, [witness, unknown], at(2))).toMatchObject({ ok: false });
    expect(readFileSync(file)).toEqual(before);
    const torn = before.subarray(0, -1);
    writeFileSync(file, torn);
    expect(await appendToTranscript(file, [witness], at(2))).toMatchObject({ ok: false, problem: /cut off/ });
    expect(readFileSync(file)).toEqual(torn);
    expect(existsSync(newFileOf(file))).toBe(false);
  });
});

describe('the page', () => {
  const hostile = `<script>alert(1)</script><img src=x onerror="alert('1')">&lt;`;
  const shown = '&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;lt;';
  const said: readonly EntryDraft[] = [
    { ...(START as Extract<EntryDraft, { entry: 'start' }>), title: hostile, place: hostile },
    { entry: 'person', name: hostile, role: 'lead', organization: hostile, identified_by: hostile },
    { entry: 'statement', by: hostile, text: hostile },
    { entry: 'file', name: hostile, about: hostile, bytes: 7, sha256: 'b'.repeat(64), sha384: 'c'.repeat(96) },
    { entry: 'end', complete: false },
  ];

  it('shows every text as text, runs nothing and loads nothing', () => {
    const page = transcriptPage(written(said).transcript, []);
    expect(page.split(shown)).toHaveLength(1 + 14);
    expect(page).not.toMatch(/<(?:script|img|link|iframe|object)|javascript:|\son\w+\s*=\s*["']|src=["']/i);
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(page) ?? [];
    const digest = createHash('sha256').update(style).digest('base64');
    expect(page).toContain(`content="default-src 'none'; style-src 'sha256-${digest}'"`);
    // Whatever stands between tags is escaped: tags of our own are all that is left.
    const tags = new Set([...page.replace(style, '').matchAll(/<\/?([a-z0-9]+)/g)].map(([, tag]) => tag));
    const ours =
      'html head meta title style body h1 h2 p section code dl dt dd table thead tbody tr th td div b br span ul li';
    expect([...tags].filter((tag) => !ours.split(' ').includes(tag ?? ''))).toEqual([]);
  });

  it('has the head, the digest, PCR values, the participant of each recipient, and a line for each signature', () => {
    const { transcript } = written(SAID);
    const page = transcriptPage(transcript, []);
    const groups = (digest: string): string => digest.match(/.{8}/g)?.join(' ') ?? '';
    for (const digest of [VECTOR_HEAD, ceremonyDigest(CEREMONY).toString('hex'), PCR0, ceremonyRegister(CEREMONY)])
      expect(page).toContain(groups(digest));
    expect(page).toMatch(new RegExp(`${RECIPIENT}</code></td><td>Alice</td>`));
    const [, signatures = ''] = /<table class="by-hand">([\s\S]*)<\/table>/.exec(page) ?? [];
    expect(signatures.match(/(<td><\/td>){3}<\/tr>/g)).toHaveLength(3);
    expect(page).not.toContain('DRAFT');
    expect(page).toMatch(new RegExp(`${keyArn(2, 'us-east-1')}</code></td><td>Carol</td>`));
    expect(page).toContain('INCOMPLETE: what this record lacks');
    // A text cannot add what looks like another member of its line.
    expect(page).toContain('text: Two lines: ⏎ and');
  });

  it('of a record that has not ended says DRAFT, and cannot be signed', () => {
    const page = transcriptPage(written(SAID.slice(0, -1)).transcript, []);
    expect(page).toContain('DRAFT: this record has not ended');
    expect(page).not.toContain('by-hand"');
  });
});
