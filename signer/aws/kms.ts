// The one file through which KMS enters the program. A key ARN outside the ceremony is refused before any network call
// (specification/custody.md#ceremony). An answer counts only when it names the key that was asked.

import {
  DecryptCommand,
  type DecryptCommandInput,
  DescribeKeyCommand,
  EncryptCommand,
  KMSClient,
  KMSServiceException,
} from '@aws-sdk/client-kms';
import type { CustodyKeys, KeyAnswer, KeyAttempt } from '../../ceremony/custody-keys.ts';
import { keyArn } from '../../ceremony/key-arn.ts';
import type { Log } from '../../common/observe/log.ts';
import { NsmError } from '../tee/nsm.ts';
import { CmsError, KEY_ENCRYPTION_ALGORITHM, type KmsRecipient } from '../tee/recipient.ts';
import { type AwsClientOptions, awsClientConfiguration, CALL_WATCHER_STEP, callWatcher } from './client.ts';
import { kmsFault, UnusableKey } from './kms-fault.ts';

export interface KmsOptions extends Omit<AwsClientOptions, 'region'> {
  readonly ceremonyArns: readonly string[];
  /** KMS decrypts to this recipient only. Encrypt cannot be attested. */
  readonly recipient?: KmsRecipient;
  /** For Encrypt alone: an enclave's sealed ones, which its parent has not. */
  readonly encryptCredentials?: AwsClientOptions['credentials'];
}

export type EncryptionContext = Readonly<Record<string, string>>;

type Reachability =
  | { readonly ok: true; readonly arn: string }
  | { readonly ok: false; readonly attempts: readonly KeyAttempt[] };

export interface Kms {
  /** @param plaintext at most 4096 bytes; stays the caller's to wipe */
  encrypt(arns: readonly string[], plaintext: Buffer, context: EncryptionContext): Promise<KeyAnswer>;
  decrypt(arns: readonly string[], ciphertext: Buffer, context: EncryptionContext): Promise<KeyAnswer>;
  /** By DescribeKey: it proves no permission to decrypt. */
  reachable(arns: readonly string[]): Promise<Reachability>;
  close(): void;
}

export function createKms(options: KmsOptions, { log }: { readonly log: Log }): Kms {
  const clients = clientsByArn(options);
  const { recipient, encryptCredentials } = options;
  const encrypting =
    encryptCredentials === undefined ? clients : clientsByArn({ ...options, credentials: encryptCredentials });

  async function firstThatServes<Answer>(
    arns: readonly string[],
    call: (client: KMSClient, arn: string) => Promise<Answer>,
    { attested = false, by = clients } = {},
  ): Promise<Served<Answer>> {
    const attempts: KeyAttempt[] = [];
    for (const arn of arns) {
      // The ceremony guard: there is no client for any other ARN.
      const client = by.get(arn);
      if (client === undefined) {
        log.error({ arn }, 'a KMS key outside the ceremony was asked for, and not called');
        attempts.push({ arn, fault: 'outside_ceremony' });
        continue;
      }
      try {
        return { ok: true, arn, answer: await call(client, arn) };
      } catch (error) {
        const fault = kmsFault(error, attested);
        log[fault === 'disclosed' ? 'error' : 'warn'](
          { arn, fault, ...errorFields(error) },
          'a custody key did not serve',
        );
        attempts.push({ arn, fault });
      }
    }
    return { ok: false, attempts };
  }

  return {
    encrypt: async (arns, Plaintext, context) =>
      asKeyAnswer(
        await firstThatServes(
          arns,
          async (client, KeyId) => {
            const input = { KeyId, Plaintext, EncryptionContext: { ...context } };
            const answer = await client.send(new EncryptCommand(input));
            return usable(KeyId, answer.KeyId, answer.CiphertextBlob);
          },
          { by: encrypting },
        ),
      ),
    decrypt: async (arns, CiphertextBlob, context) =>
      asKeyAnswer(
        await firstThatServes(
          arns,
          async (client, KeyId) => {
            const input = { KeyId, CiphertextBlob, EncryptionContext: { ...context } };
            if (recipient !== undefined) return decryptAttested(client, input, recipient);
            const answer = await client.send(new DecryptCommand(input));
            return usable(KeyId, answer.KeyId, answer.Plaintext);
          },
          { attested: recipient !== undefined },
        ),
      ),
    reachable: (arns) =>
      firstThatServes(arns, async (client, KeyId) => {
        const { KeyMetadata } = await client.send(new DescribeKeyCommand({ KeyId }));
        if (KeyMetadata?.Arn !== KeyId) throw new UnusableKey('wrong_answer');
        if (KeyMetadata.KeyState === 'Disabled') throw new UnusableKey('disabled');
        if (KeyMetadata.KeyState !== 'Enabled') throw new UnusableKey('invalid_state');
      }),
    close: () => {
      for (const client of new Set([...clients.values(), ...encrypting.values()])) client.destroy();
    },
  };
}

export function custodyKeysOf(kms: Kms): CustodyKeys {
  return {
    encryptShare: (_index, arns, share, context) => kms.encrypt(arns, share, context),
    decryptShare: (_index, arns, ciphertext, context) => kms.decrypt(arns, ciphertext, context),
  };
}

type Served<Answer> =
  | { readonly ok: true; readonly arn: string; readonly answer: Answer }
  | { readonly ok: false; readonly attempts: readonly KeyAttempt[] };

function clientsByArn(options: KmsOptions): ReadonlyMap<string, KMSClient> {
  const byRegion = new Map<string, KMSClient>();
  const byArn = new Map<string, KMSClient>();
  for (const arn of options.ceremonyArns) {
    const { region } = keyArn(arn);
    const client = byRegion.get(region) ?? createClient(options, region);
    byRegion.set(region, client);
    byArn.set(arn, client);
  }
  return byArn;
}

function createClient(options: KmsOptions, region: string): KMSClient {
  const client = new KMSClient(awsClientConfiguration({ ...options, region }));
  if (options.onCall !== undefined) client.middlewareStack.add(callWatcher(options.onCall), CALL_WATCHER_STEP);
  return client;
}

/** The SDK's attempts of one call share the document. */
async function decryptAttested(
  client: KMSClient,
  input: DecryptCommandInput & { readonly KeyId: string },
  recipient: KmsRecipient,
): Promise<Buffer> {
  const AttestationDocument = await recipient.attest();
  const Recipient = { AttestationDocument, KeyEncryptionAlgorithm: KEY_ENCRYPTION_ALGORITHM } as const;
  const answer = await client.send(new DecryptCommand({ ...input, Recipient }));
  if (answer.Plaintext !== undefined && answer.Plaintext.length > 0) {
    answer.Plaintext.fill(0);
    throw new UnusableKey('disclosed');
  }
  return recipient.open(usable(input.KeyId, answer.KeyId, answer.CiphertextForRecipient));
}

/** Without a copy: what KMS answered is wiped where it is. */
function usable(asked: string, answered: string | undefined, bytes: Uint8Array | undefined): Buffer {
  if (answered !== asked || bytes === undefined || bytes.length === 0) {
    bytes?.fill(0);
    throw new UnusableKey('wrong_answer');
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Their messages are the service's own words, or ours; a parser's message quotes the answer, which may be a share. */
const QUOTABLE = [KMSServiceException, CmsError, NsmError];

function errorFields(error: unknown): { readonly error: string; readonly said?: string } {
  if (!(error instanceof Error)) return { error: typeof error };
  const isQuotable = QUOTABLE.some((type) => error instanceof type);
  return isQuotable ? { error: error.name, said: error.message } : { error: error.name };
}

function asKeyAnswer(served: Served<Buffer>): KeyAnswer {
  return served.ok ? { ok: true, arn: served.arn, bytes: served.answer } : served;
}
