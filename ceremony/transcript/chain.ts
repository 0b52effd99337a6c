// The bytes of a transcript (specification/custody.md#transcript). Reading verifies: it finds every change inside. Only
// the head on paper shows an end that was cut off, and a whole file that was written again.

import { createHash } from 'node:crypto';
import { bounded, renderPlace } from '../../common/command-line/text.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { type Entry, type EntryDraft, entrySchema, timeText } from './entries.ts';
import { meaningProblem } from './meaning.ts';

/** A start entry with every custody key and replica that a ceremony may have is about 1.3 MB. */
export const MAX_TRANSCRIPT_BYTES = 4 * 1024 * 1024;
export const MAX_ENTRIES = 4096;
const MAX_REASON_CHARACTERS = 200;
const NOTHING_BEFORE = '0'.repeat(64);
const LINE_END = 0x0a;

export interface Transcript {
  readonly entries: readonly Entry[];
  /** SHA-256 of each line, hex; the last of them is the head. */
  readonly digests: readonly string[];
}

export type ReadTranscript =
  | ({ readonly ok: true } & Transcript)
  /** `line` counts from one; 0 is the file. */
  | { readonly ok: false; readonly line: number; readonly problem: string };

export const EMPTY_TRANSCRIPT: Transcript = { entries: [], digests: [] };

export function transcriptHead({ digests }: Transcript): string {
  return digests.at(-1) ?? NOTHING_BEFORE;
}

export function isFinished({ entries }: Transcript): boolean {
  return entries.at(-1)?.entry === 'end';
}

export function following(
  transcript: Transcript,
  said: EntryDraft,
  at: Date,
): ReadTranscript & { readonly bytes: Buffer } {
  const place = { number: transcript.entries.length + 1, previous: transcriptHead(transcript) };
  const entry = said.entry === 'end' ? { ...said, ...place } : { ...said, ...place, at: timeText(at) };
  const bytes = Buffer.from(`${canonicalJson(entry as CanonicalValue)}\n`);
  return { ...withLine(transcript, bytes), bytes };
}

export function readTranscript(bytes: Uint8Array): ReadTranscript {
  if (bytes.length === 0) return { ok: false, line: 0, problem: 'is empty' };
  if (bytes.length > MAX_TRANSCRIPT_BYTES) return { ok: false, line: 0, problem: 'is too large' };
  let transcript: Transcript = EMPTY_TRANSCRIPT;
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(LINE_END, from);
    const number = transcript.entries.length + 1;
    if (end === -1) return { ok: false, line: number, problem: 'has no end: the file was cut off' };
    const read = withLine(transcript, bytes.subarray(from, end + 1));
    if (!read.ok) return read;
    transcript = read;
    from = end + 1;
  }
  return { ok: true, ...transcript };
}

function withLine(transcript: Transcript, line: Uint8Array): ReadTranscript {
  const { entries, digests } = transcript;
  const number = entries.length + 1;
  const refuse = (problem: string) => ({ ok: false, line: number, problem }) as const;
  if (number > MAX_ENTRIES) return refuse(`is one too many: a transcript has at most ${MAX_ENTRIES} lines`);
  const parsed = parseStrictJson(line.subarray(0, -1));
  if (parsed.kind === 'refused') return refuse(`is no strict JSON: ${parsed.hint}`);
  const { data: entry, error } = entrySchema.safeParse(parsed.value, { error: explainIssue });
  if (error !== undefined) {
    const [issue] = error.issues;
    const place = renderPlace(issue?.path ?? []);
    return refuse(
      `is no entry: ${place === '' ? '' : `${place} `}${bounded(issue?.message ?? '', MAX_REASON_CHARACTERS)}`,
    );
  }
  if (entry.number !== number) return refuse(`has the number ${entry.number}: lines were removed, inserted or moved`);
  if (entry.previous !== transcriptHead(transcript)) {
    return refuse('does not follow the line before: that line was altered, or lines were removed, inserted or moved');
  }
  if (Buffer.compare(Buffer.from(`${canonicalJson(entry as CanonicalValue)}\n`), line) !== 0) {
    return refuse('is not in canonical form');
  }
  const problem = meaningProblem(entries, entry);
  if (problem !== undefined) return refuse(problem);
  const digest = createHash('sha256').update(line).digest('hex');
  return { ok: true, entries: [...entries, entry], digests: [...digests, digest] };
}

// Values to the one text that JSON has for them (RFC 8785), so that a digest of the text is a digest of the value. It
// refuses what two programs could write differently: fractions, unsafe integers, lone surrogates.

type CanonicalValue =
  | string
  | number
  | boolean
  | null
  | readonly CanonicalValue[]
  | { readonly [member: string]: CanonicalValue };

export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError('a number that is no safe integer has no canonical text');
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  // RFC 8785 §3.2.3: by code units, which is how sort() compares.
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${canonicalString(name)}:${canonicalJson(value[name] ?? null)}`).join(',')}}`;
}

/** RFC 8785 §3.2.2.2: as JSON.stringify, and a lone surrogate is an error. */
function canonicalString(text: string): string {
  if (!text.isWellFormed()) throw new RangeError('text with a lone surrogate has no canonical text');
  return JSON.stringify(text);
}

function isList(value: object): value is readonly CanonicalValue[] {
  return Array.isArray(value);
}
