// GET /api/v1/attestation?nonce=…: a fresh document for this RA-TLS connection (specification/evidence.md#nonce). It
// needs no credentials, so it has limits.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  CLIENT_NONCE_BYTES,
  connectionNonce,
  DOCUMENT_MEDIA_TYPE,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  keyBinding,
} from '../../../common/attestation/contract.ts';
import { parsePeerAddress } from '../../../common/formats/ip-address.ts';
import { SignerError } from '../../api/errors.ts';
import { type Nsm, NsmError } from '../../tee/nsm.ts';
import { attestedIdentityOf, peerAddressOf } from '../context.ts';
import { FairQueue, type FairQueueLimits } from '../fair-queue.ts';

const ATTESTATION_OUTCOMES = ['ok', 'overloaded', 'connection_limit', 'client_closed', 'failed'] as const;
export type AttestationOutcome = (typeof ATTESTATION_OUTCOMES)[number];

export interface AttestationRoute {
  readonly nsm: Pick<Nsm, 'attest'>;
  readonly onOutcome?: (outcome: AttestationOutcome) => void;
  readonly onMounted?: (waiting: () => number) => void;
  readonly limits?: Partial<AttestationLimits>;
}

interface AttestationLimits extends FairQueueLimits {
  readonly maxDocumentsPerConnection: number;
}

/** The NSM is one slow device, and the signer needs it too. A client waits less than it gives a connection (15 s). */
const LIMITS: AttestationLimits = { maxRunning: 2, maxWaiting: 256, maxWaitMs: 10_000, maxDocumentsPerConnection: 4 };
/** RFC 8446 §7.5: in TLS 1.3 the same as none. */
const NO_CONTEXT = Buffer.alloc(0);
const NONCE = new RegExp(`^([0-9a-fA-F]{2}){${CLIENT_NONCE_BYTES.min},${CLIENT_NONCE_BYTES.max}}$`);
const NONCE_HINT = `nonce is ${CLIENT_NONCE_BYTES.min} to ${CLIENT_NONCE_BYTES.max} bytes in hex`;

export function mountAttestation(
  app: FastifyInstance,
  { nsm, onOutcome, onMounted, limits: given }: AttestationRoute,
): void {
  const limits = { ...LIMITS, ...given };
  const queue = new FairQueue(limits);
  const documentsOf = new WeakMap<Socket, number>();
  onMounted?.(() => queue.waiting);

  const make = async (socket: TLSSocket, fields: Parameters<Nsm['attest']>[0]): Promise<Buffer> => {
    const made = documentsOf.get(socket) ?? 0;
    if (made >= limits.maxDocumentsPerConnection) throw new ConnectionLimit();
    documentsOf.set(socket, made + 1); // also while it waits: a client may ask for several at once
    const gone = new AbortController();
    const onClose = (): void => gone.abort();
    socket.once('close', onClose);
    try {
      return await queue.run(turnOf(peerAddressOf(socket)), gone.signal, () => attest(nsm, fields));
    } catch (error) {
      documentsOf.set(socket, (documentsOf.get(socket) ?? 1) - 1); // it has none, and may ask again
      throw error;
    } finally {
      socket.off('close', onClose);
    }
  };

  const config = { access: { kind: 'open' } } as const;
  app.get('/api/v1/attestation', { config }, async (request, reply) => {
    const identity = attestedIdentityOf(request.raw.socket);
    if (identity === undefined) throw new SignerError('not_found', { hint: 'it is on the RA-TLS listener only' });
    const clientNonce = readNonce(request);
    if (clientNonce === undefined) throw new SignerError('malformed_parameter', { hint: NONCE_HINT });
    const socket = request.raw.socket as TLSSocket;
    if (socket.destroyed) throw new SignerError('client_closed');
    const exported = socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, NO_CONTEXT);
    const nonce = connectionNonce(clientNonce, exported);
    exported.fill(0);
    try {
      const document = await make(socket, { nonce, userData: keyBinding(identity.spki) });
      onOutcome?.('ok');
      return reply.type(DOCUMENT_MEDIA_TYPE).header('cache-control', 'no-store').send(document);
    } catch (error) {
      onOutcome?.(outcomeOf(error));
      // The next request of an honest client is worth a new connection; this one gets nothing more.
      if (error instanceof ConnectionLimit) reply.header('connection', 'close');
      throw error;
    }
  });
}

class ConnectionLimit extends SignerError {
  constructor() {
    super('overloaded', { hint: 'this connection has had its documents: open another one' });
  }
}

function outcomeOf(error: unknown): AttestationOutcome {
  if (error instanceof ConnectionLimit) return 'connection_limit';
  const reason = error instanceof SignerError ? error.reason : undefined;
  return reason === 'overloaded' || reason === 'client_closed' ? reason : 'failed';
}

/** An IPv4 address, or the network of 64 bits that one IPv6 host usually has to itself (RFC 4291 §2.5.4). */
function turnOf(peerAddress: string | undefined): string {
  const bytes = peerAddress === undefined ? undefined : parsePeerAddress(peerAddress);
  return bytes === undefined ? '' : Buffer.from(bytes.subarray(0, 8)).toString('hex');
}

function readNonce({ query }: FastifyRequest): Buffer | undefined {
  const { nonce } = query as { readonly nonce?: unknown };
  return typeof nonce === 'string' && NONCE.test(nonce) ? Buffer.from(nonce, 'hex') : undefined;
}

async function attest(nsm: Pick<Nsm, 'attest'>, fields: Parameters<Nsm['attest']>[0]): Promise<Buffer> {
  try {
    return await nsm.attest(fields);
  } catch (error) {
    if (error instanceof NsmError) throw new SignerError('attestation_unavailable', { cause: error });
    throw error;
  }
}
