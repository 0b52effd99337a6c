// The custody ceremony (specification/custody.md#ceremony), for the configuration and for the image. It refuses a key
// that would count twice towards the threshold, a threshold out of reach, a mistyped recipient.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { renderPlace } from '../common/command-line/text.ts';
import { renderPath, suggest } from '../common/command-line/violations.ts';
import { explainIssue } from '../common/formats/issues.ts';
import { isAgeRecipient, notARecipient } from './age-recipient.ts';
import { isMultiRegion, parseKeyArn } from './key-arn.ts';

/** Shares are points of GF(2^8) other than zero, so no more than 255 of them (specification/custody.md#ceremony). */
export const MAX_CUSTODY_KEYS = 255;
export const MAX_REPLICAS = 64;
const MAX_RECIPIENTS = 64;
export const MAX_GENERATION = 2 ** 31 - 1;

const MUST_BE_KEY_ARN =
  'must be a KMS key ARN, arn:aws:kms:REGION:ACCOUNT:key/KEY-ID in lower case; an alias is not accepted';

const keyArnSchema = z
  .string(MUST_BE_KEY_ARN)
  .refine((text) => parseKeyArn(text) !== undefined, { error: MUST_BE_KEY_ARN, abort: true });

const MUST_BE_DIGEST =
  'must be the digest of a ceremony: 96 characters 0-9 a-f, as `strongroom ceremony plan` prints it';

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
  .refine(isAgeRecipient, { error: ({ input }) => notARecipient(String(input)) });

export const ceremonySchema = z
  .strictObject({
    generation: z.int().min(1).max(MAX_GENERATION),
    kms_threshold: z.int().min(1).max(MAX_CUSTODY_KEYS),
    kms_keys: custodyKeysSchema
      .min(1, 'must name at least one custody key')
      .refine(everyKeyOnce, 'must not name one key in two entries: it would count twice towards kms_threshold'),
    retired_kms_keys: custodyKeysSchema.default([]),
    retired_kms_threshold: z.int().min(1).max(MAX_CUSTODY_KEYS).exactOptional(),
    previous_ceremony: z
      .string(MUST_BE_DIGEST)
      .regex(/^[0-9a-f]{96}$/, MUST_BE_DIGEST)
      .exactOptional(),
    root_token_recipients: z
      .array(ageRecipientSchema)
      .min(1, 'must name at least one recipient: nobody could open the root token')
      .max(MAX_RECIPIENTS, `must name at most ${MAX_RECIPIENTS} recipients`)
      .refine((recipients) => new Set(recipients).size === recipients.length, 'must not repeat a recipient'),
  })
  .refine(everyArnOnce, {
    path: ['retired_kms_keys'],
    error: 'must not repeat an ARN, neither its own nor one of kms_keys: a key is in use or retired',
  });

export interface CeremonyBlock {
  readonly generation: number;
  readonly kms_threshold: number;
  readonly kms_keys: readonly CustodyKey[];
  readonly retired_kms_keys: readonly CustodyKey[];
  readonly retired_kms_threshold?: number;
  readonly previous_ceremony?: string;
  readonly root_token_recipients: readonly string[];
}

export interface CustodyKey {
  readonly arns: readonly string[];
}

export interface Ceremony {
  readonly generation: number;
  readonly kmsThreshold: number;
  /** Share i is encrypted under the i-th of them, counted from one. */
  readonly kmsKeys: readonly CustodyKey[];
  readonly retiredKmsKeys: readonly CustodyKey[];
  /** Below this floor, who may encrypt under one key and write the row could plant an "earlier" master key. */
  readonly retiredKmsThreshold: number | undefined;
  /** Hex. An enclave opens a record that was written under it. */
  readonly previousCeremony: string | undefined;
  readonly rootTokenRecipients: readonly string[];
}

export class InvalidCeremony extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the ceremony is not valid: ${problems.join('; ')}`);
    this.name = 'InvalidCeremony';
    this.problems = problems;
  }
}

export function thresholdIsReachable(block: CeremonyBlock): boolean {
  return block.kms_threshold <= block.kms_keys.length;
}

const wholeSchema = ceremonySchema.refine(thresholdIsReachable, {
  path: ['kms_threshold'],
  error: 'must be at most the number of kms_keys: the master key could never be unsealed',
});

export function parseCeremony(value: unknown): Ceremony {
  const { data, error } = wholeSchema.safeParse(value, { error: explainIssue });
  if (error !== undefined) {
    throw new InvalidCeremony(error.issues.flatMap(problemsOf));
  }
  return {
    generation: data.generation,
    kmsThreshold: data.kms_threshold,
    kmsKeys: data.kms_keys,
    retiredKmsKeys: data.retired_kms_keys,
    retiredKmsThreshold: data.retired_kms_threshold,
    previousCeremony: data.previous_ceremony,
    rootTokenRecipients: data.root_token_recipients,
  };
}

export function ceremonyBlock(ceremony: Ceremony): CeremonyBlock {
  return {
    generation: ceremony.generation,
    kms_threshold: ceremony.kmsThreshold,
    kms_keys: ceremony.kmsKeys.map(custodyKey),
    retired_kms_keys: ceremony.retiredKmsKeys.map(custodyKey),
    ...(ceremony.retiredKmsThreshold === undefined ? {} : { retired_kms_threshold: ceremony.retiredKmsThreshold }),
    ...(ceremony.previousCeremony === undefined ? {} : { previous_ceremony: ceremony.previousCeremony }),
    root_token_recipients: ceremony.rootTokenRecipients,
  };
}

const CANONICAL_FORM = 'strongroom ceremony v1';

/** specification/evidence.md#ceremony. A change of this form is a new version in its first line. */
export function canonicalBytes(ceremony: Ceremony): Buffer {
  return Buffer.from(`${CANONICAL_FORM}\n${JSON.stringify(ceremonyBlock(ceremony))}\n`, 'ascii');
}

export function ceremonyDigest(ceremony: Ceremony): Buffer {
  return createHash('sha384').update(canonicalBytes(ceremony)).digest();
}

export function ceremonyArns(ceremony: Ceremony): readonly string[] {
  return [...ceremony.kmsKeys, ...ceremony.retiredKmsKeys].flatMap(({ arns }) => arns);
}

function problemsOf(issue: z.core.$ZodIssue): readonly string[] {
  const { path, message } = issue;
  if (issue.code !== 'unrecognized_keys') return [`${renderPlace(path)} ${message}`.trim()];
  const known = Object.keys(path.length === 0 ? ceremonySchema.shape : custodyKeySchema.shape);
  return issue.keys.map((key) => {
    const advice = suggest(key, known, `remove it; there are: ${known.join(', ')}`);
    return `${renderPath([...path, key])} is not an option: ${advice}`;
  });
}

/** Zod's own words for a member that is not there would call it undefined. */
function custodyKey({ arns }: CustodyKey): CustodyKey {
  return { arns };
}

function isOneMultiRegionKey(texts: readonly string[]): boolean {
  const [first, ...others] = texts.map(parseKeyArn);
  if (first === undefined || !isMultiRegion(first)) return false;
  return others.every(
    (arn) => arn?.keyId === first.keyId && arn.account === first.account && arn.partition === first.partition,
  );
}

function everyKeyOnce(keys: readonly CustodyKey[]): boolean {
  const ids = keys.map(({ arns: [first = ''] }) => parseKeyArn(first)?.keyId ?? first);
  return new Set(ids).size === ids.length;
}

function everyArnOnce(block: CeremonyBlock): boolean {
  const arns = [...block.kms_keys, ...block.retired_kms_keys].flatMap((key) => key.arns);
  return new Set(arns).size === arns.length;
}

/** The genesis validators root, 32 bytes in lower case. */
const NETWORK = /^0x[0-9a-f]{64}$/;
const DEPLOYMENT_ID = /^[A-Za-z0-9._:/-]{1,1024}$/;

/** In the encryption context of a share: shares of two deployments with the same custody keys do not mix. */
export interface Deployment {
  readonly network: string;
  readonly id: string;
}

export function isNetwork(text: string): boolean {
  return NETWORK.test(text);
}

export function isDeploymentId(text: string): boolean {
  return DEPLOYMENT_ID.test(text);
}

/** @throws Error: a record with such a deployment could be written and never be read */
export function deploymentOf(network: string, id: string): Deployment {
  if (!isNetwork(network)) throw new Error('a network is the 32 bytes of its genesis validators root in hex');
  if (!isDeploymentId(id)) throw new Error('the deployment id has characters other than A-Z a-z 0-9 . _ : / -');
  return { network, id };
}

export function isSameDeployment(one: Deployment, other: Deployment): boolean {
  return one.network === other.network && one.id === other.id;
}
