// A small KMS with key material of its own, for tests and rehearsals: AWS JSON 1.1 over HTTP on loopback. It keeps what the signer
// relies on (encryption contexts, replicas that share material and nothing else, a key served in its own region only) and
// misbehaves as it is told. Signatures are looked for and not verified. Nothing it holds protects anything.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { keyArn } from '../../ceremony/key-arn.ts';
import type { KmsOptions } from '../../enclave/aws/kms.ts';

export type KmsOperation = 'Encrypt' | 'Decrypt' | 'DescribeKey' | 'GenerateRandom';

/** How a key behaves, one replica for itself. */
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
  | 'garbled'; // the answer is not JSON where its bytes begin

export interface KmsCall {
  readonly operation: string;
  readonly arn: string | undefined;
  /** Of the credential scope. */
  readonly region: string;
}

export interface KmsServer {
  /** Base URL, for every region. */
  readonly endpoint: string;
  /** Every request that arrived, refused ones too. */
  readonly calls: readonly KmsCall[];
  /** One key; several ARNs are the replicas of a multi-region key. */
  createKey(arns: readonly string[]): void;
  /** @param operations those that behave so; the others keep their behaviour. Default: all. */
  setBehaviour(arn: string, behaviour: KeyBehaviour, operations?: readonly KmsOperation[]): void;
  close(): Promise<void>;
}

const OPERATIONS: readonly KmsOperation[] = ['Encrypt', 'Decrypt', 'DescribeKey', 'GenerateRandom'];
/** AWS KMS API Reference, Encrypt and GenerateRandom. */
const MAX_PLAINTEXT_BYTES = 4096;
const MAX_RANDOM_BYTES = 1024;
const FINGERPRINT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Options of a client for this server: everything is explicit, nothing is looked up. */
export function kmsClientOptions(
  server: { readonly endpoint: string },
  ceremonyArns: readonly string[],
  options: Partial<KmsOptions> = {},
): KmsOptions {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return { endpoint: server.endpoint, credentials, ceremonyArns, ...options };
}

export async function startKmsServer(): Promise<KmsServer> {
  const keys = new Map<string, Key>();
  const calls: KmsCall[] = [];
  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => undefined); // the client may go at any time
    serve(incoming, outgoing, keys, calls).catch(() => outgoing.socket?.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    calls,
    createKey: (arns) => {
      const material = { fingerprint: randomBytes(FINGERPRINT_BYTES), secret: randomBytes(32) };
      for (const arn of arns) keys.set(arn, { arn, material, behaviours: new Map() });
    },
    setBehaviour: (arn, behaviour, operations = OPERATIONS) => {
      const key = keys.get(arn);
      if (key === undefined) throw new Error(`there is no key ${arn}`);
      for (const operation of operations) key.behaviours.set(operation, behaviour);
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Key {
  readonly arn: string;
  /** Replicas of one multi-region key share it. */
  readonly material: { readonly fingerprint: Buffer; readonly secret: Buffer };
  readonly behaviours: Map<KmsOperation, KeyBehaviour>;
}

interface KmsRequest {
  readonly KeyId?: string;
  readonly Plaintext?: string;
  readonly CiphertextBlob?: string;
  readonly EncryptionContext?: Readonly<Record<string, string>>;
  readonly NumberOfBytes?: number;
}

class Refusal extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  keys: ReadonlyMap<string, Key>,
  calls: KmsCall[],
): Promise<void> {
  const request = JSON.parse(await readAll(incoming)) as KmsRequest;
  const operation = String(incoming.headers['x-amz-target']).replace(/^TrentService\./, '');
  const scope = /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/([^/]+)\/kms\/aws4_request/.exec(
    incoming.headers.authorization ?? '',
  );
  const region = scope?.[1] ?? '';
  calls.push({ operation, arn: request.KeyId, region });
  try {
    if (region === '') throw new Refusal('MissingAuthenticationTokenException', 'the request is not signed');
    answer(outgoing, isOperation(operation) ? perform(operation, request, region, keys) : unknownOperation());
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    outgoing.writeHead(error.name === 'KMSInternalException' ? 500 : 400, JSON_1_1);
    outgoing.end(JSON.stringify({ __type: error.name, message: error.message }));
  }
}

const JSON_1_1 = { 'content-type': 'application/x-amz-json-1.1' };

/** What a request comes to: an answer, or none. */
type Outcome =
  | { readonly kind: 'answer'; readonly body: object; readonly garbled?: boolean }
  | { readonly kind: 'reset' }
  | { readonly kind: 'silence' };

function answer(outgoing: ServerResponse, outcome: Outcome): void {
  if (outcome.kind === 'silence') return;
  if (outcome.kind === 'reset') {
    outgoing.socket?.resetAndDestroy();
    return;
  }
  const text = JSON.stringify(outcome.body);
  outgoing
    .writeHead(200, JSON_1_1)
    .end(outcome.garbled === true ? text.replace(/"(?:Plaintext|CiphertextBlob|KeyMetadata)":/, '$&x') : text);
}

function perform(
  operation: KmsOperation,
  request: KmsRequest,
  region: string,
  keys: ReadonlyMap<string, Key>,
): Outcome {
  if (operation === 'GenerateRandom') return { kind: 'answer', body: generateRandom(request) };
  const key = keyOf(request, region, keys);
  const behaviour = key.behaviours.get(operation) ?? 'enabled';
  switch (behaviour) {
    case 'unreachable':
      return { kind: 'reset' };
    case 'hanging':
      return { kind: 'silence' };
    case 'deleted':
      throw new Refusal('NotFoundException', `Key '${key.arn}' does not exist`);
    case 'denied':
      throw new Refusal('AccessDeniedException', `User: test is not authorized to perform: kms:${operation}`);
    case 'throttled':
      throw new Refusal('ThrottlingException', 'Rate exceeded');
    case 'disabled':
      if (operation === 'DescribeKey') break;
      throw new Refusal('DisabledException', `${key.arn} is disabled.`);
    case 'pending_deletion':
      if (operation === 'DescribeKey') break;
      throw new Refusal('KMSInvalidStateException', `${key.arn} is pending deletion.`);
    case 'enabled':
    case 'impostor':
    case 'garbled':
      break;
  }
  const named = behaviour === 'impostor' ? key.arn.replace(/.$/, (last) => (last === '0' ? '1' : '0')) : key.arn;
  const body = KEY_OPERATIONS[operation]({ key, named, behaviour, request });
  return { kind: 'answer', body, garbled: behaviour === 'garbled' };
}

interface KeyRequest {
  readonly key: Key;
  /** The ARN that the answer gives. */
  readonly named: string;
  readonly behaviour: KeyBehaviour;
  readonly request: KmsRequest;
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

  Decrypt({ key, named, request }) {
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
      const plaintext = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
      return { KeyId: named, ...disclose(plaintext), ...SYMMETRIC };
    } catch {
      throw new Refusal('InvalidCiphertextException', '');
    }
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

function generateRandom({ NumberOfBytes = 0 }: KmsRequest): object {
  if (!(NumberOfBytes >= 1 && NumberOfBytes <= MAX_RANDOM_BYTES)) throw invalid('NumberOfBytes');
  return disclose(randomBytes(NumberOfBytes));
}

/** The one place where plaintext leaves. */
function disclose(plaintext: Buffer): object {
  return { Plaintext: plaintext.toString('base64') };
}

/** Key ARNs only, and each in its own region, as the real service answers. */
function keyOf({ KeyId = '' }: KmsRequest, region: string, keys: ReadonlyMap<string, Key>): Key {
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

function isOperation(text: string): text is KmsOperation {
  return OPERATIONS.some((operation) => operation === text);
}

function unknownOperation(): never {
  throw new Refusal('UnknownOperationException', '');
}

function invalid(member: string): Refusal {
  return new Refusal('ValidationException', `${member} is of a length that is not allowed`);
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
