// Sealed credentials for the tables, and for a slashing database (specification/custody.md#table-credentials).

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

const AWS = z.strictObject({
  access_key_id: z.string().regex(/^\w{16,128}$/),
  secret_access_key: z.string().regex(PRINTABLE),
  session_token: z.string().regex(PRINTABLE).exactOptional(),
});
const DATABASE = z.strictObject({ database_password: z.string().regex(PRINTABLE) });
const BOTH = AWS.extend(DATABASE.shape);

interface EncryptedTableCredentials {
  readonly ciphertext: Buffer;
  readonly keyArn: string;
}

/** What the configuration has a use for: the ciphertext holds this, and nothing else. */
export interface CredentialNeeds {
  readonly dynamodb: boolean;
  readonly postgres: boolean;
}

export interface TableCredentials {
  readonly aws: AwsCredentials | undefined;
  readonly databasePassword: string | undefined;
}

/** @throws Error, a startup failure, which says nothing of what was opened */
export async function openTableCredentials(
  { ciphertext, keyArn }: EncryptedTableCredentials,
  needs: CredentialNeeds,
  { kms, ceremony }: { readonly kms: Pick<Kms, 'decrypt'>; readonly ceremony: Ceremony },
): Promise<TableCredentials> {
  const arns = replicasOf(keyArn, ceremony);
  if (arns === undefined) {
    throw new Error(`${OPTION}.key_arn: ${keyArn} is not a custody key of the ceremony, so it was not called`);
  }
  const answer = await kms.decrypt(arns, ciphertext, TABLE_CREDENTIALS_CONTEXT);
  if (!answer.ok) throw new Error(`${OPTION}: the ciphertext was not opened: ${answer.attempts.map(said).join('; ')}`);
  try {
    return credentialsIn(answer.bytes, needs);
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
function credentialsIn(bytes: Buffer, { dynamodb, postgres }: CredentialNeeds): TableCredentials {
  const members = [...(dynamodb ? [AWS_WANTED] : []), ...(postgres ? [DATABASE_WANTED] : [])];
  const wanted = `encrypt {${members.join(', ')}}${dynamodb ? TOKEN_WANTED : ''}, and nothing else`;
  const json = parseStrictJson(bytes);
  if (json.kind === 'refused') throw new Error(`${OPTION}: what the ciphertext holds is not JSON: ${wanted}`);
  const schema: z.ZodType<Partial<z.output<typeof BOTH>>> = dynamodb ? (postgres ? BOTH : AWS) : DATABASE;
  const { data } = schema.safeParse(json.value);
  if (data === undefined) throw new Error(`${OPTION}: what the ciphertext holds has other members: ${wanted}`);
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, session_token: sessionToken } = data;
  const isAws = accessKeyId !== undefined && secretAccessKey !== undefined;
  return {
    aws: isAws ? { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) } : undefined,
    databasePassword: data.database_password,
  };
}

const AWS_WANTED = '"access_key_id": "…", "secret_access_key": "…"';
const DATABASE_WANTED = '"database_password": "…"';
const TOKEN_WANTED = ', with "session_token" where there is one';
