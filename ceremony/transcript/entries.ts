// What a transcript can say: the forms of its entries, each strict (specification/custody.md#transcript). Texts are for
// people and for paper: characters that a page would not show, or would show elsewhere, are refused.

import { z } from 'zod';
import { MAX_KEY_EVIDENCE_CHARACTERS, readKeyEvidence } from '../../common/attestation/key-evidence.ts';
import { readRowEvidence } from '../../common/attestation/row-evidence.ts';
import { ageRecipientSchema, ceremonySchema, isDeploymentId, isNetwork, MAX_CUSTODY_KEYS } from '../definition.ts';

/** What a person is at a ceremony for (specification/custody.md#transcript). */
export const ROLES = ['lead', 'custodian', 'participant', 'operator', 'witness'] as const;

/** What a person says that they did, where the day asks for it (specification/custody.md#transcript-whole). */
export const DEEDS = [
  'said_time',
  'compared_digest',
  'compared_pcrs',
  'granted_encrypt',
  'revoked_encrypt',
  'saw_policies',
  'opened_root_token',
  'revoked_root_token',
] as const;

/** What a file is, where the day asks for one. */
export const CONTENTS = ['configuration', 'root_token_row'] as const;

/** What a ceremony is for: enclaves prove more than ordinary hosts, so their record has more. */
export const SIGNERS = ['enclaves', 'hosts'] as const;

export const TRANSCRIPT_FORMAT = 'strongroom ceremony transcript v1';
export type Role = (typeof ROLES)[number];
export type Deed = (typeof DEEDS)[number];
export type Signers = (typeof SIGNERS)[number];

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

/** A person's name: no two people of a ceremony may have names that look the same. */
const personName = name
  .refine((text) => /\p{L}/u.test(nameSkeleton(text)), 'must have letters that can be seen')
  .refine((text) => !BLANK.test(text), 'must have no code point that is drawn as nothing, or that is none')
  .refine(
    (text) => !isOfMixedScripts(text),
    'must not mix Latin letters with Cyrillic, Greek or others that look alike',
  );

/** The blank of Braille, and code points that are unassigned or for private use. */
const BLANK = /[\u2800\p{Cn}\p{Co}]/u;

const statementText = z
  .string()
  .min(1, 'must not be empty')
  .max(MAX_STATEMENT_CHARACTERS, `must have at most ${MAX_STATEMENT_CHARACTERS} characters`)
  .refine((text) => isShown(text, UNSHOWN_BUT_LINES), 'must have no control characters and no outer blanks');

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits');
const sha384 = z.string().regex(/^[0-9a-f]{96}$/, 'must be 96 hex digits');

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
    signers: z.enum(SIGNERS),
    ceremony: ceremonySchema,
    ceremony_digest_sha384: sha384,
  }),
  z.strictObject({
    ...common,
    entry: z.literal('person'),
    name: personName,
    role: z.enum(ROLES),
    organization: name.exactOptional(),
    identified_by: name.exactOptional(),
    recipient: ageRecipientSchema.exactOptional(),
    custody_key: z.int().min(1).max(MAX_CUSTODY_KEYS).exactOptional(),
  }),
  z.strictObject({
    ...common,
    entry: z.literal('statement'),
    by: name,
    did: z.enum(DEEDS).exactOptional(),
    text: statementText,
  }),
  z.strictObject({
    ...common,
    entry: z.literal('file'),
    name,
    about: name,
    holds: z.enum(CONTENTS).exactOptional(),
    bytes: z.int().min(0),
    sha256,
    sha384,
  }),
  z.strictObject({
    ...common,
    entry: z.literal('pcrs'),
    registers: z.record(z.string().regex(/^PCR(?:[12]?\d|3[01])$/, 'must be PCR0 to PCR31'), sha384),
  }),
  z.strictObject({
    ...common,
    entry: z.literal('master_key'),
    deployment: z.strictObject({
      network: z.string().refine(isNetwork, 'must be 0x and 64 hex digits'),
      id: z.string().refine(isDeploymentId, 'must be a deployment id'),
    }),
    record: sha384,
    evidence: z
      .string()
      .max(MAX_KEY_EVIDENCE_CHARACTERS)
      .refine((text) => readKeyEvidence(text) !== undefined, 'must be the evidence of a master key'),
    root_token: z
      .string()
      .refine((text) => readRowEvidence(text)?.purpose === 'root_token', 'must be the evidence of a root token')
      .exactOptional(),
  }),
  z.strictObject({ number: z.int().min(1), previous: sha256, entry: z.literal('end'), complete: z.boolean() }),
]);

export type Entry = z.output<typeof entrySchema>;
export type StartEntry = Extract<Entry, { entry: 'start' }>;
export type PersonEntry = Extract<Entry, { entry: 'person' }>;
export type MasterKeyEntry = Extract<Entry, { entry: 'master_key' }>;

/**
 * An entry as its author states it: the writer of the file adds its number, its time and its link to the line before.
 */
export type EntryDraft = Entry extends infer One
  ? One extends Entry
    ? Omit<One, 'number' | 'at' | 'previous'>
    : never
  : never;

export function timeText(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}

/**
 * What two names have in common that readers take for one: compatibility forms, decomposed letters, case, blanks,
 * dashes, apostrophes, and letters of another script that look the same (UTS #39, some of its confusables).
 */
export function nameSkeleton(text: string): string {
  const seen = text.normalize('NFKD').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '');
  const folded = seen.replaceAll(/\s+/gu, ' ').trim().toLowerCase().normalize('NFKD');
  return Array.from(folded.replaceAll(/\p{Pd}/gu, '-').replaceAll(/[\u02b9\u02bc\u2018\u2019\u201b]/gu, "'"))
    .map((letter) => LOOKS_LIKE.get(letter) ?? letter)
    .join('');
}

/** By its small letter, also where only the capital looks the same. */
const LOOKS_LIKE: ReadonlyMap<string, string> = new Map(
  [
    ['\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445', 'abekmhopctyx'], // Cyrillic
    ['\u0455\u0456\u0458\u0501\u04bb\u051b\u051d\u04af\u04cf', 'sijdhqwyl'], // Cyrillic, further languages
    ['\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7', 'abezhikmnoptyx'], // Greek
    ['\u0131\u0251\u0261', 'iag'], // Latin
  ].flatMap(([letters = '', latin = '']) =>
    Array.from(letters, (letter, at): [string, string] => [letter, latin[at] ?? letter]),
  ),
);

/** Letters of these scripts look like Latin ones. */
const LIKE_LATIN = /[\p{sc=Cyrillic}\p{sc=Greek}\p{sc=Armenian}\p{sc=Cherokee}\p{sc=Lisu}\p{sc=Coptic}]/u;

function isOfMixedScripts(text: string): boolean {
  return /\p{sc=Latin}/u.test(text) && LIKE_LATIN.test(text);
}

function isShown(text: string, unshown: RegExp): boolean {
  return text.isWellFormed() && !unshown.test(text) && text.trim() === text;
}
