// Ceremonies and custody keys for tests: keys in this process, each with AES-256-GCM material of its own and the
// encryption context as associated data. They keep hold of every share they saw, so that tests can look whether it was
// wiped.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { CustodyKeyFault, CustodyKeys } from '../../ceremony/custody-keys.ts';
import { type Ceremony, deploymentOf, parseCeremony } from '../../ceremony/definition.ts';
import {
  type CustodyTerms,
  type Unwrapped,
  unwrapMasterKey,
  type Wrapped,
  wrapMasterKey,
} from '../../ceremony/key-record.ts';
import type { MasterKeyRecord } from '../../ceremony/record.ts';
import type { CustodyRefusal } from '../../ceremony/refusals.ts';
import { keyArn } from '../config/loading.ts';

export const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';

export interface CeremonyOf {
  readonly threshold: number;
  /** ARNs of each custody key, or how many keys. */
  readonly keys: number | readonly (readonly string[])[];
  readonly generation?: number;
  readonly retired?: readonly (readonly string[])[];
}

export function ceremonyOf({ threshold, keys, generation = 1, retired = [] }: CeremonyOf): Ceremony {
  const entries = typeof keys === 'number' ? Array.from({ length: keys }, (_, at) => [keyArn(at + 1)]) : keys;
  return parseCeremony({
    generation,
    kms_threshold: threshold,
    kms_keys: entries.map((arns) => ({ arns })),
    retired_kms_keys: retired.map((arns) => ({ arns })),
    root_token_recipients: [RECIPIENT],
  });
}

export const DEPLOYMENT = deploymentOf(`0x${'4b'.repeat(32)}`, 'state-1');

export function termsOf(ceremony: Ceremony, terms: Partial<CustodyTerms> = {}): CustodyTerms {
  return { ceremony, deployment: DEPLOYMENT, ...terms };
}

export interface TestKeys extends CustodyKeys {
  /** ARNs in the order in which they were asked for. */
  readonly asked: readonly string[];
  /** Shares as they were given to be encrypted, and as they were handed out decrypted. */
  readonly seen: readonly Buffer[];
  /** From now on this key does not serve. */
  lose(arn: string, fault?: CustodyKeyFault): void;
  /** From now on this key decrypts to something else. */
  falsify(arn: string, change: (share: Buffer) => void): void;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function custodyKeys(): TestKeys {
  const material = new Map<string, Buffer>();
  const lost = new Map<string, CustodyKeyFault>();
  const changes = new Map<string, (share: Buffer) => void>();
  const asked: string[] = [];
  const seen: Buffer[] = [];

  const serve = async (arns: readonly string[], operate: (secret: Buffer, arn: string) => Buffer | undefined) => {
    const [arn = ''] = arns;
    asked.push(arn);
    const fault = lost.get(arn);
    if (fault !== undefined) return { ok: false as const, attempts: [{ arn, fault }] };
    const secret = material.get(arn) ?? randomBytes(32);
    material.set(arn, secret);
    const bytes = operate(secret, arn);
    if (bytes === undefined) return { ok: false as const, attempts: [{ arn, fault: 'bad_ciphertext' as const }] };
    return { ok: true as const, arn, bytes };
  };

  return {
    asked,
    seen,
    lose: (arn, fault = 'unreachable') => void lost.set(arn, fault),
    falsify: (arn, change) => void changes.set(arn, change),
    encryptShare: (_index, arns, share, context) => {
      seen.push(share);
      return serve(arns, (secret) => {
        const nonce = randomBytes(NONCE_BYTES);
        const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(JSON.stringify(context)));
        return Buffer.concat([nonce, cipher.update(share), cipher.final(), cipher.getAuthTag()]);
      });
    },
    decryptShare: (_index, arns, ciphertext, context) =>
      serve(arns, (secret, arn) => {
        const sealed = ciphertext.subarray(NONCE_BYTES);
        try {
          const decipher = createDecipheriv('aes-256-gcm', secret, ciphertext.subarray(0, NONCE_BYTES))
            .setAAD(Buffer.from(JSON.stringify(context)))
            .setAuthTag(sealed.subarray(-TAG_BYTES));
          const share = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
          seen.push(share);
          changes.get(arn)?.(share);
          return share;
        } catch {
          return undefined;
        }
      }),
  };
}

export async function wrapped(masterKey: Buffer, ceremony: Ceremony, keys: CustodyKeys): Promise<MasterKeyRecord> {
  return succeeded(await wrapMasterKey(masterKey, termsOf(ceremony), keys)).record;
}

export async function refusal(record: MasterKeyRecord, ceremony: Ceremony, keys: CustodyKeys): Promise<CustodyRefusal> {
  return failed(await unwrapMasterKey(record, termsOf(ceremony), keys));
}

export function succeeded<Outcome extends Wrapped | Unwrapped>(outcome: Outcome | CustodyRefusal): Outcome {
  if (outcome.ok) return outcome;
  throw new Error(`${outcome.refusal}: ${outcome.message}`);
}

export function failed(outcome: Wrapped | Unwrapped | CustodyRefusal): CustodyRefusal {
  if (!outcome.ok) return outcome;
  throw new Error('it succeeded');
}

export function isWiped(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
