// The custody ceremony as a configuration block (service.md, Custody ceremony). Shape and what can be told from the text
// alone: key ARNs and no aliases, no key counted twice towards the threshold, replicas of one multi-region key together,
// recipients whose checksum holds, so that a mistyped one cannot swallow the root token.

import { Encrypter } from 'age-encryption';
import { z } from 'zod';

/** Shares are points of GF(2^8), so no more than 255 of them (decisions.md section 7). */
const MAX_CUSTODY_KEYS = 255;
/** More than AWS has regions in a partition. */
const MAX_REPLICAS = 64;
const MAX_RECIPIENTS = 64;
const MAX_GENERATION = 2 ** 31 - 1;

/** Partition, region and key id; a multi-region key keeps its `mrk-` id in every region. */
const KEY_ARN =
  /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$/;
const MUST_BE_KEY_ARN =
  'must be a KMS key ARN, arn:aws:kms:REGION:ACCOUNT:key/KEY-ID in lower case; an alias is not accepted';

const keyArnSchema = z.string(MUST_BE_KEY_ARN).regex(KEY_ARN, MUST_BE_KEY_ARN);

const custodyKeySchema = z.strictObject({
  arns: z
    .array(keyArnSchema)
    .min(1, 'must name at least one key ARN')
    .max(MAX_REPLICAS, `must name at most ${MAX_REPLICAS} replicas`)
    .refine((arns) => new Set(arns).size === arns.length, 'must not repeat an ARN')
    .refine((arns) => arns.length === 1 || isOneMultiRegionKey(arns), 'must be the replicas of one multi-region key'),
});

const custodyKeysSchema = z.array(custodyKeySchema).max(MAX_CUSTODY_KEYS, `must be at most ${MAX_CUSTODY_KEYS} keys`);

export const ageRecipientSchema = z
  .string('must be an age X25519 public key, age1…')
  .refine(isAgeRecipient, 'must be an age X25519 public key, age1…, with a valid checksum');

export const ceremonySchema = z.strictObject({
  generation: z.int().min(1).max(MAX_GENERATION),
  kms_threshold: z.int().min(1).max(MAX_CUSTODY_KEYS),
  kms_keys: custodyKeysSchema
    .min(1, 'must name at least one custody key')
    .refine(everyKeyOnce, 'must not name one key in two entries: it would count twice towards kms_threshold'),
  retired_kms_keys: custodyKeysSchema.default([]),
  root_token_recipients: z
    .array(ageRecipientSchema)
    .min(1, 'must name at least one recipient: nobody could open the root token')
    .max(MAX_RECIPIENTS, `must name at most ${MAX_RECIPIENTS} recipients`),
});

export type Ceremony = z.output<typeof ceremonySchema>;

function isOneMultiRegionKey(arns: readonly string[]): boolean {
  const [first] = arns.map(keyId);
  return first?.startsWith('mrk-') === true && arns.every((arn) => keyId(arn) === first);
}

function everyKeyOnce(keys: readonly { readonly arns: readonly string[] }[]): boolean {
  const ids = keys.map(({ arns }) => keyId(arns[0] ?? ''));
  return new Set(ids).size === ids.length;
}

function keyId(arn: string): string {
  return KEY_ARN.exec(arn)?.[1] ?? arn;
}

/** X25519 only (service.md): the plugin and post-quantum kinds of `age1…` have longer data. */
function isAgeRecipient(text: string): boolean {
  if (!/^age1[02-9ac-hj-np-z]{58}$/.test(text)) return false;
  try {
    new Encrypter().addRecipient(text);
    return true;
  } catch {
    return false;
  }
}
