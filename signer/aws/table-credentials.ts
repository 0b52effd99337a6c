// Sealed credentials for the tables (specification/custody.md#table-credentials).

import { z } from 'zod';
import { KEY_FAULTS, type KeyAttempt } from '../../ceremony/custody-keys.ts';
import { type Ceremony, ceremonyArns } from '../../ceremony/definition.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import type { AwsCredentials } from './client.ts';
import type { EncryptionContext, Kms } from './kms.ts';

/** The ciphertext serves for nothing else, and a share of the master key does not serve for it. */
export const TABLE_CREDENTIALS_CONTEXT: EncryptionContext = { service: 'strongroom', purpose: 'table-credentials' };

const OPTION = 'tee.nitro.table_credentials';
const PRINTABLE = /^[\x21-\x7e]{16,3072}$/;

const sealedSchema = z.strictObject({
  access_key_id: z.string().regex(/^\w{16,128}$/),
  secret_access_key: z.string().regex(PRINTABLE),
  session_token: z.string().regex(PRINTABLE).exactOptional(),
});

export interface SealedTableCredentials {
  readonly ciphertext: Buffer;
  readonly keyArn: string;
}

/** @throws Error, a startup failure, which says nothing of what was opened */
export async function openTableCredentials(
  { ciphertext, keyArn }: SealedTableCredentials,
  { kms, ceremony }: { readonly kms: Pick<Kms, 'decrypt'>; readonly ceremony: Ceremony },
): Promise<AwsCredentials> {
  const arns = replicasOf(keyArn, ceremony);
  if (arns === undefined) {
    throw new Error(`${OPTION}.key_arn: ${keyArn} is not a custody key of the ceremony, so it was not called`);
  }
  const answer = await kms.decrypt(arns, ciphertext, TABLE_CREDENTIALS_CONTEXT);
  if (!answer.ok) throw new Error(`${OPTION}: the ciphertext was not opened: ${answer.attempts.map(said).join('; ')}`);
  try {
    return credentialsIn(answer.bytes);
  } finally {
    answer.bytes.fill(0);
  }
}

function replicasOf(keyArn: string, ceremony: Ceremony): readonly string[] | undefined {
  const keys = [...ceremony.kmsKeys, ...ceremony.retiredKmsKeys];
  return keys.find(({ arns }) => arns.includes(keyArn))?.arns;
}

export function isCeremonyKey(keyArn: string, ceremony: Ceremony): boolean {
  return ceremonyArns(ceremony).includes(keyArn);
}

function said({ arn, fault }: KeyAttempt): string {
  return `${arn} ${fault === 'bad_ciphertext' ? OTHER_CONTEXT : KEY_FAULTS[fault]}`;
}

const OTHER_CONTEXT =
  'did not make this ciphertext, or not with the encryption context ' +
  `${Object.entries(TABLE_CREDENTIALS_CONTEXT)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')}: encrypt the credentials again (docs/guides/custody.md)`;

/** No message repeats what was opened. */
function credentialsIn(bytes: Buffer): AwsCredentials {
  const json = parseStrictJson(bytes);
  if (json.kind === 'refused') throw new Error(`${OPTION}: what the ciphertext holds is not JSON: ${WANTED}`);
  const { data } = sealedSchema.safeParse(json.value);
  if (data === undefined) throw new Error(`${OPTION}: what the ciphertext holds has other members: ${WANTED}`);
  return {
    accessKeyId: data.access_key_id,
    secretAccessKey: data.secret_access_key,
    ...(data.session_token === undefined ? {} : { sessionToken: data.session_token }),
  };
}

const WANTED =
  'encrypt {"access_key_id": "…", "secret_access_key": "…"}, with "session_token" where there is one, ' +
  'and nothing else';
