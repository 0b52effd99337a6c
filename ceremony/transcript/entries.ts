// What a transcript can say: the forms of its entries, each strict (specification/custody.md#transcript). Texts are for
// people and for paper: characters that a page would not show, or would show elsewhere, are refused.

import { z } from 'zod';
import { ageRecipientSchema, ceremonySchema } from '../definition.ts';
import { ROLES } from '../descriptions/arguments.ts';

export const TRANSCRIPT_FORMAT = 'strongroom ceremony transcript v1';
export type Role = (typeof ROLES)[number];

const MAX_NAME_CHARACTERS = 200;
const MAX_STATEMENT_CHARACTERS = 4000;

/** Control and format characters and separators of lines; joiners, which words of some languages need, are allowed. */
const UNSHOWN = /(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const UNSHOWN_BUT_LINES = /(?!\u200c|\u200d|\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

const name = z
  .string()
  .min(1, 'must not be empty')
  .max(MAX_NAME_CHARACTERS, `must have at most ${MAX_NAME_CHARACTERS} characters`)
  .refine((text) => isShown(text, UNSHOWN), 'must be one line without control characters and outer blanks');

const statementText = z
  .string()
  .min(1, 'must not be empty')
  .max(MAX_STATEMENT_CHARACTERS, `must have at most ${MAX_STATEMENT_CHARACTERS} characters`)
  .refine((text) => isShown(text, UNSHOWN_BUT_LINES), 'must have no control characters and no outer blanks');

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits');
const sha384 = z.string().regex(/^[0-9a-f]{96}$/, 'must be 96 hex digits');

/** RFC 3339 in UTC, to the second. */
const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'must be a time in UTC')
  .refine((text) => {
    const at = new Date(text);
    return !Number.isNaN(at.getTime()) && timeText(at) === text;
  }, 'must be a time that there is');

const common = { number: z.int().min(1), at: time, previous: sha256 };

export const entrySchema = z.discriminatedUnion('entry', [
  z.strictObject({
    ...common,
    entry: z.literal('start'),
    format: z.literal(TRANSCRIPT_FORMAT),
    title: name,
    place: name.exactOptional(),
    ceremony: ceremonySchema,
    ceremony_digest_sha384: sha384,
  }),
  z.strictObject({
    ...common,
    entry: z.literal('person'),
    name,
    role: z.enum(ROLES),
    organization: name.exactOptional(),
    identified_by: name.exactOptional(),
    recipient: ageRecipientSchema.exactOptional(),
  }),
  z.strictObject({ ...common, entry: z.literal('statement'), by: name, text: statementText }),
  z.strictObject({
    ...common,
    entry: z.literal('file'),
    name,
    about: name,
    bytes: z.int().min(0),
    sha256,
    sha384,
  }),
  z.strictObject({
    ...common,
    entry: z.literal('pcrs'),
    registers: z.record(z.string().regex(/^PCR(?:[12]?\d|3[01])$/, 'must be PCR0 to PCR31'), sha384),
  }),
  z.strictObject({ number: z.int().min(1), previous: sha256, entry: z.literal('end') }),
]);

export type Entry = z.output<typeof entrySchema>;
export type StartEntry = Extract<Entry, { entry: 'start' }>;
export type PersonEntry = Extract<Entry, { entry: 'person' }>;

/** An entry as somebody says it: number, time and link are given to it when it is written. */
export type Said = Entry extends infer One
  ? One extends Entry
    ? Omit<One, 'number' | 'at' | 'previous'>
    : never
  : never;

/** To the second: what a person reads off a clock. */
export function timeText(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}

function isShown(text: string, unshown: RegExp): boolean {
  return text.isWellFormed() && !unshown.test(text) && text.trim() === text;
}
