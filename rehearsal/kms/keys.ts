// The keys of the KMS stand-in: encryption contexts, replicas, and every way of failing that a test asks for. Nothing
// it holds protects anything.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { keyArn } from '../../ceremony/key-arn.ts';
import { type AttestedRecipient, DISCLOSURES, type Disclose, type Disclosure } from './attestation.ts';

export const KMS_OPERATIONS = ['Encrypt', 'Decrypt', 'DescribeKey', 'GenerateRandom'] as const;

export type KmsOperation = (typeof KMS_OPERATIONS)[number];

export type KeyBehaviour =
  | 'enabled'
  | 'disabled'
  | 'pending_deletion'
  | 'deleted'
  | 'denied'
  | 'throttled'
  | 'unreachable' // the connection breaks
  | 'hanging' // never answered: the client has to give up
  | 'impostor' // answers in the name of another key
  | 'garbled' // the answer is not JSON where its bytes begin
  | Disclosure; // attested calls only

export interface KmsKey {
  readonly arn: string;
  /** Replicas of one multi-region key share it. */
  readonly material: { readonly fingerprint: Buffer; readonly secret: Buffer };
  readonly behaviours: Map<KmsOperation, KeyBehaviour>;
  /** For Decrypt. Undefined: no attestation is asked for. */
  conditions?: AttestationConditions;
}

/** `kms:RecipientAttestation:PCR<n>` or `:ImageSha384`, to hex. None of them: any attested call will do. */
export type AttestationConditions = Readonly<Record<string, readonly string[]>>;

export interface KmsRequest {
  readonly KeyId?: string;
  readonly Plaintext?: string;
  readonly CiphertextBlob?: string;
  readonly EncryptionContext?: Readonly<Record<string, string>>;
  readonly NumberOfBytes?: number;
  readonly Recipient?: { readonly AttestationDocument?: string; readonly KeyEncryptionAlgorithm?: string };
}

export type Outcome =
  | { readonly kind: 'answer'; readonly body: object; readonly garbled?: boolean }
  | { readonly kind: 'reset' }
  | { readonly kind: 'silence' };

export class Refusal extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

/** AWS KMS API Reference, Encrypt and GenerateRandom. */
const MAX_PLAINTEXT_BYTES = 4096;
const MAX_RANDOM_BYTES = 1024;
const FINGERPRINT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function newMaterial(): KmsKey['material'] {
  return { fingerprint: randomBytes(FINGERPRINT_BYTES), secret: randomBytes(32) };
}

interface Performed {
  readonly operation: KmsOperation;
  readonly request: KmsRequest;
  readonly region: string;
  readonly attested: AttestedRecipient | undefined;
}

export interface KmsKeyStore {
  readonly keys: ReadonlyMap<string, KmsKey>;
  readonly disclose: Disclose;
}

export function perform(performed: Performed, { keys, disclose }: KmsKeyStore): Outcome {
  const { operation, request, region, attested } = performed;
  if (operation === 'GenerateRandom') {
    return { kind: 'answer', body: disclose(random(request), { attested, arn: '', behaviour: 'honest' }) };
  }
  const key = keyOf(request, region, keys);
  const behaviour = key.behaviours.get(operation) ?? 'enabled';
  if (behaviour === 'unreachable') return { kind: 'reset' };
  if (behaviour === 'hanging') return { kind: 'silence' };
  refuseAs(behaviour, key.arn, operation);
  if (operation === 'Decrypt') demandConditions(key, attested);
  const named = behaviour === 'impostor' ? key.arn.replace(/.$/, (last) => (last === '0' ? '1' : '0')) : key.arn;
  const body = KEY_OPERATIONS[operation]({ key, named, behaviour, request, attested, disclose });
  return { kind: 'answer', body, garbled: behaviour === 'garbled' };
}

function refuseAs(behaviour: KeyBehaviour, arn: string, operation: KmsOperation): void {
  if (behaviour === 'deleted') throw new Refusal('NotFoundException', `Key '${arn}' does not exist`);
  if (behaviour === 'denied') throw denied(operation);
  if (behaviour === 'throttled') throw new Refusal('ThrottlingException', 'Rate exceeded');
  if (operation === 'DescribeKey') return;
  if (behaviour === 'disabled') throw new Refusal('DisabledException', `${arn} is disabled.`);
  if (behaviour === 'pending_deletion') throw new Refusal('KMSInvalidStateException', `${arn} is pending deletion.`);
}

/** As AWS: one message for a principal that may not and for a condition that is not met. */
function denied(operation: KmsOperation): Refusal {
  return new Refusal('AccessDeniedException', `User: test is not authorized to perform: kms:${operation}`);
}

/** AWS KMS Developer Guide, condition keys for Nitro Enclaves: a key that is not in the document meets no condition. */
function demandConditions({ conditions }: KmsKey, attested: AttestedRecipient | undefined): void {
  if (conditions === undefined) return;
  if (attested === undefined) throw denied('Decrypt');
  for (const [condition, accepted] of Object.entries(conditions)) {
    const register = condition.replace('kms:RecipientAttestation:', '').replace('ImageSha384', 'PCR0');
    const value = attested.pcrs.get(Number(register.replace('PCR', '')))?.toString('hex');
    if (value === undefined || !accepted.includes(value)) throw denied('Decrypt');
  }
}

interface KeyRequest extends Pick<Performed, 'request' | 'attested'>, Pick<KmsKeyStore, 'disclose'> {
  readonly key: KmsKey;
  readonly named: string;
  readonly behaviour: KeyBehaviour;
}

const KEY_OPERATIONS: Readonly<Record<Exclude<KmsOperation, 'GenerateRandom'>, (request: KeyRequest) => object>> = {
  Encrypt({ key, named, request }) {
    const plaintext = Buffer.from(request.Plaintext ?? '', 'base64');
    if (plaintext.length < 1 || plaintext.length > MAX_PLAINTEXT_BYTES) throw invalid('Plaintext');
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key.material.secret, nonce).setAAD(associated(request));
    const parts = [key.material.fingerprint, nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
    return { KeyId: named, CiphertextBlob: Buffer.concat(parts).toString('base64'), ...SYMMETRIC };
  },

  Decrypt({ key, named, behaviour, request, attested, disclose }) {
    const misbehaviour = DISCLOSURES.find((one) => one === behaviour) ?? 'honest';
    const disclosed = disclose(decrypted(key, request), { attested, arn: key.arn, behaviour: misbehaviour });
    return { KeyId: named, ...disclosed, ...SYMMETRIC };
  },

  DescribeKey({ key, named, behaviour }) {
    const states: Partial<Record<KeyBehaviour, string>> = { disabled: 'Disabled', pending_deletion: 'PendingDeletion' };
    const KeyState = states[behaviour] ?? 'Enabled';
    const { account, keyId } = keyArn(key.arn);
    return {
      KeyMetadata: { Arn: named, AWSAccountId: account, KeyId: keyId, KeyState, Enabled: KeyState === 'Enabled' },
    };
  },
};

const SYMMETRIC = { EncryptionAlgorithm: 'SYMMETRIC_DEFAULT' };

function decrypted(key: KmsKey, request: KmsRequest): Buffer {
  const blob = Buffer.from(request.CiphertextBlob ?? '', 'base64');
  const sealed = blob.subarray(FINGERPRINT_BYTES + NONCE_BYTES);
  if (sealed.length < TAG_BYTES) throw new Refusal('InvalidCiphertextException', '');
  if (!blob.subarray(0, FINGERPRINT_BYTES).equals(key.material.fingerprint)) {
    throw new Refusal(
      'IncorrectKeyException',
      'The key ID in the request does not identify a CMK that can perform this.',
    );
  }
  const nonce = blob.subarray(FINGERPRINT_BYTES, FINGERPRINT_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key.material.secret, nonce)
    .setAAD(associated(request))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw new Refusal('InvalidCiphertextException', '');
  }
}

function random({ NumberOfBytes = 0 }: KmsRequest): Buffer {
  if (!(NumberOfBytes >= 1 && NumberOfBytes <= MAX_RANDOM_BYTES)) throw invalid('NumberOfBytes');
  return randomBytes(NumberOfBytes);
}

/** Key ARNs only, and each in its own region, as the real service answers. */
function keyOf({ KeyId = '' }: KmsRequest, region: string, keys: ReadonlyMap<string, KmsKey>): KmsKey {
  const key = keys.get(KeyId);
  if (key === undefined || keyArn(key.arn).region !== region) {
    throw new Refusal('NotFoundException', `Key '${KeyId}' does not exist`);
  }
  return key;
}

/** The encryption context is authenticated and case-sensitive; the order of its members does not count. */
function associated({ EncryptionContext = {} }: KmsRequest): Buffer {
  const members = Object.entries(EncryptionContext).sort(([one], [other]) => (one < other ? -1 : 1));
  return Buffer.from(JSON.stringify(members), 'utf8');
}

function invalid(member: string): Refusal {
  return new Refusal('ValidationException', `${member} is of a length that is not allowed`);
}
