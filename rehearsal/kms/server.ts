// A small KMS for tests and rehearsals: AWS JSON 1.1 on loopback. Signatures of requests are looked for and not
// verified. Nothing it holds protects anything.

import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import type { KmsOptions } from '../../signer/aws/kms.ts';
import { type AttestedRecipient, attestedBy, createDisclosures, saidBy } from './attestation.ts';
import {
  type AttestationConditions,
  type KeyBehaviour,
  KMS_OPERATIONS,
  type KmsKey,
  type KmsKeyStore,
  type KmsOperation,
  type KmsRequest,
  newMaterial,
  type Outcome,
  perform,
  Refusal,
} from './keys.ts';

export type { KeyBehaviour, KmsOperation } from './keys.ts';

export interface KmsServerOptions {
  /** SHA-256 of the root certificate that attestation documents lead to, hex. Without it no document is taken. */
  readonly attestationRoot?: string;
  /** Documents that nothing has signed, as QEMU's security module makes them: their registers count. */
  readonly unsafeUnsignedDocuments?: boolean;
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly port?: number;
  readonly clock?: { now(): number };
}

interface KmsCall {
  readonly operation: string;
  readonly arn: string | undefined;
  readonly region: string;
  readonly accessKeyId: string;
  readonly document?: Buffer;
}

export interface KmsServer {
  readonly endpoint: string;
  /** Every request that arrived, refused ones too. */
  readonly calls: readonly KmsCall[];
  createKey(arns: readonly string[]): void;
  /** @param operations those that behave so; the others keep their behaviour. Default: all. */
  setBehaviour(arn: string, behaviour: KeyBehaviour, operations?: readonly KmsOperation[]): void;
  isEnabled(arn: string): boolean;
  /** The key policy: Decrypt for attested calls only, whose registers have the values given. */
  requireAttestation(arn: string, conditions: AttestationConditions): void;
  close(): Promise<void>;
}

/** Options of a client for this server: everything is explicit, nothing is looked up. */
export function kmsClientOptions(
  server: { readonly endpoint: string },
  ceremonyArns: readonly string[],
  options: Partial<KmsOptions> = {},
): KmsOptions {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return { endpoint: server.endpoint, credentials, ceremonyArns, ...options };
}

export async function startKmsServer(options: KmsServerOptions = {}): Promise<KmsServer> {
  const keys = new Map<string, KmsKey>();
  const calls: KmsCall[] = [];
  const store = { keys, disclose: createDisclosures() };
  const server = createListener(options, (incoming, outgoing) => {
    outgoing.on('error', () => undefined); // the client may go at any time
    serve(incoming, outgoing, { ...options, store, calls }).catch(() => outgoing.socket?.destroy());
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  const keyOf = (arn: string): KmsKey => {
    const key = keys.get(arn);
    if (key === undefined) throw new Error(`there is no key ${arn}`);
    return key;
  };
  return {
    endpoint: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${address.port}`,
    calls,
    createKey: (arns) => {
      const material = newMaterial();
      for (const arn of arns) keys.set(arn, { arn, material, behaviours: new Map() });
    },
    isEnabled: (arn) => (keyOf(arn).behaviours.get('Decrypt') ?? 'enabled') === 'enabled',
    setBehaviour: (arn, behaviour, operations = KMS_OPERATIONS) => {
      for (const operation of operations) keyOf(arn).behaviours.set(operation, behaviour);
    },
    requireAttestation: (arn, conditions) => {
      keyOf(arn).conditions = conditions;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function createListener({ tls }: KmsServerOptions, listener: RequestListener): Server {
  return tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
}

interface World extends KmsServerOptions {
  readonly store: KmsKeyStore;
  readonly calls: KmsCall[];
}

async function serve(incoming: IncomingMessage, outgoing: ServerResponse, world: World): Promise<void> {
  const request = JSON.parse(await text(incoming)) as KmsRequest;
  const operation = String(incoming.headers['x-amz-target']).replace(/^TrentService\./, '');
  const scope = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/kms\/aws4_request/.exec(
    incoming.headers.authorization ?? '',
  );
  const [, accessKeyId = '', region = ''] = scope ?? [];
  const document = documentOf(request);
  world.calls.push({
    operation,
    arn: request.KeyId,
    region,
    accessKeyId,
    ...(document === undefined ? {} : { document }),
  });
  try {
    if (region === '') throw new Refusal('MissingAuthenticationTokenException', 'the request is not signed');
    if (!isOperation(operation)) throw new Refusal('UnknownOperationException', '');
    const attested = document === undefined ? undefined : verified(document, request, world);
    answer(outgoing, perform({ operation, request, region, attested }, world.store));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    outgoing.writeHead(error.name === 'KMSInternalException' ? 500 : 400, JSON_1_1);
    outgoing.end(JSON.stringify({ __type: error.name, message: error.message }));
  }
}

const JSON_1_1 = { 'content-type': 'application/x-amz-json-1.1' };

function documentOf({ Recipient }: KmsRequest): Buffer | undefined {
  return Recipient === undefined ? undefined : Buffer.from(Recipient.AttestationDocument ?? '', 'base64');
}

function verified(document: Buffer, { Recipient }: KmsRequest, world: World): AttestedRecipient {
  const { attestationRoot, unsafeUnsignedDocuments, clock } = world;
  if (Recipient?.KeyEncryptionAlgorithm !== 'RSAES_OAEP_SHA_256') {
    throw new Refusal('ValidationException', 'KeyEncryptionAlgorithm is not one that is known');
  }
  if (unsafeUnsignedDocuments === true) return saidBy(document);
  const found =
    attestationRoot === undefined
      ? { refused: 'this server has no root for attestation documents' }
      : attestedBy(document, attestationRoot, clock?.now() ?? Date.now());
  if ('refused' in found) throw new Refusal('ValidationException', `the attestation document: ${found.refused}`);
  return found;
}

function answer(outgoing: ServerResponse, outcome: Outcome): void {
  if (outcome.kind === 'silence') return;
  if (outcome.kind === 'reset') {
    outgoing.socket?.resetAndDestroy();
    return;
  }
  const text = JSON.stringify(outcome.body);
  outgoing
    .writeHead(200, JSON_1_1)
    .end(
      outcome.garbled === true
        ? text.replace(/"(?:Plaintext|CiphertextBlob|CiphertextForRecipient|KeyMetadata)":/, '$&x')
        : text,
    );
}

function isOperation(text: string): text is KmsOperation {
  return KMS_OPERATIONS.some((operation) => operation === text);
}
