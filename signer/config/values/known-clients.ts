// The list `tls.known_clients` (specification/authorization.md#client-certificates). Each item says exactly one thing
// that a certificate is known by.

import { z } from 'zod';
import { MAX_CIDRS_PER_TOKEN } from '../../api/policy.ts';
import { policyNamesSchema, tokenNameSchema } from './static-auth.ts';
import { safeCidrSchema } from './values.ts';

const MAX_KNOWN_CLIENTS = 1024;
const MAX_SUBJECT_CHARACTERS = 1024;
const MAX_PATH_CHARACTERS = 4096;

const DIGEST = 'must be a SHA-256 as 64 hex digits, with colons or without, or as sha256//BASE64';
const SUBJECT =
  'must be a subject as `openssl x509 -noout -subject -nameopt RFC2253,-esc_msb` prints it: CN=teku-1,O=Example';

const digestSchema = z.string(DIGEST).transform((text, context) => {
  const digest = fingerprintHex(text) ?? base64Digest(text);
  if (digest !== undefined) return digest;
  context.addIssue({ code: 'custom', message: DIGEST });
  return z.NEVER;
});

/** Without the spaces after commas that people write. */
const subjectSchema = z
  .string(SUBJECT)
  .max(MAX_SUBJECT_CHARACTERS, SUBJECT)
  .regex(/^[A-Za-z0-9.]+=[^\n]+$/, SUBJECT)
  .transform((subject) => subject.replace(/(?<!\\), +/g, ','));

const knownClientSchema = z
  .strictObject({
    name: tokenNameSchema,
    subject: subjectSchema.exactOptional(),
    spki_sha256: digestSchema.exactOptional(),
    certificate_sha256: digestSchema.exactOptional(),
    file: z.string().min(1, 'must be a path').max(MAX_PATH_CHARACTERS).exactOptional(),
    policies: policyNamesSchema.min(1, 'must name at least one policy: the client could do nothing'),
    bound_cidrs: z
      .array(safeCidrSchema)
      .max(MAX_CIDRS_PER_TOKEN, `must have at most ${MAX_CIDRS_PER_TOKEN} ranges`)
      .default([]),
  })
  .refine(
    ({ subject, spki_sha256, certificate_sha256, file }) =>
      [subject, spki_sha256, certificate_sha256, file].filter((one) => one !== undefined).length === 1,
    'must have exactly one of subject, spki_sha256, certificate_sha256 and file',
  );

export const knownClientsSchema = z
  .array(knownClientSchema, 'must be a list of known clients')
  .max(MAX_KNOWN_CLIENTS, `must have at most ${MAX_KNOWN_CLIENTS} clients`);

export type KnownClient = z.output<typeof knownClientSchema>;

function base64Digest(text: string): string | undefined {
  const [, base64 = ''] = /^sha256\/\/([A-Za-z0-9+/]{43}=)$/.exec(text) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  return base64 !== '' && bytes.toString('base64') === base64 ? bytes.toString('hex') : undefined;
}

/** 32 bytes of hex in any case, with colons between all of them or none. @returns 64 lower-case digits */
export function fingerprintHex(text: string): string | undefined {
  const isHex = /^(?:[0-9a-f]{64}|[0-9a-f]{2}(?::[0-9a-f]{2}){31})$/i.test(text);
  return isHex ? text.replaceAll(':', '').toLowerCase() : undefined;
}
