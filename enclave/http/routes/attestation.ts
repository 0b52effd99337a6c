// GET /api/v1/attestation?nonce=…: a fresh document for the connection it is asked over, on the RA-TLS listener only. Its nonce is made of
// the client's and of a secret that the two ends of this TLS connection share (RFC 8446 §7.5), so whoever relays the answer over another
// connection gets nothing that verifies; its user data is of the certificate that this connection was served with. No credentials: it
// says what everybody may know, and is bounded.

import type { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  CLIENT_NONCE_BYTES,
  connectionNonce,
  DOCUMENT_MEDIA_TYPE,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  keyBinding,
} from '../../api/attestation.ts';
import { SignerError } from '../../api/errors.ts';
import { type Nsm, NsmError } from '../../tee/nsm.ts';
import { attestedIdentityOf } from '../connections.ts';
import { attestationRouteSchema } from '../openapi-attestation.ts';
import { refuse } from '../replies.ts';
import { limitWork } from '../work-limits.ts';

export interface AttestationRoute {
  readonly nsm: Pick<Nsm, 'attest'>;
}

/** The NSM is one slow device, and the signer needs it too. */
const LIMITS = { maxConcurrentRequests: 2, requestTimeoutSeconds: 15 } as const;
/** RFC 8446 §7.5: in TLS 1.3 the same as none. */
const NO_CONTEXT = Buffer.alloc(0);
const NONCE = new RegExp(`^([0-9a-fA-F]{2}){${CLIENT_NONCE_BYTES.min},${CLIENT_NONCE_BYTES.max}}$`);
const NONCE_HINT = `nonce is ${CLIENT_NONCE_BYTES.min} to ${CLIENT_NONCE_BYTES.max} bytes in hex`;

export function mountAttestation(app: FastifyInstance, { nsm }: AttestationRoute): void {
  const limited = limitWork(LIMITS);
  const config = { access: { kind: 'open' } } as const;
  app.get('/api/v1/attestation', { config, schema: attestationRouteSchema }, async (request, reply) => {
    const identity = attestedIdentityOf(request.raw.socket);
    if (identity === undefined) return refuse(request, reply, 'not_found', 'it is on the RA-TLS listener only');
    const clientNonce = readNonce(request);
    if (clientNonce === undefined) return refuse(request, reply, 'malformed_parameter', NONCE_HINT);
    const socket = request.raw.socket as TLSSocket;
    if (socket.destroyed) return refuse(request, reply, 'client_closed'); // nobody is there, and no session to export from
    const exported = socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, NO_CONTEXT);
    const nonce = connectionNonce(clientNonce, exported);
    exported.fill(0);
    const document = await limited(() => attest(nsm, { nonce, userData: keyBinding(identity.spki) }));
    return reply.type(DOCUMENT_MEDIA_TYPE).header('cache-control', 'no-store').send(document);
  });
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
