// The chamber over HTTP (specification/custody.md#sealing). A sealed signer authenticates no caller.

import type { FastifyInstance } from 'fastify';
import type { ChamberStatus, SealAnswer } from '../../api/chamber.ts';
import { sealRequestSchema } from '../../api/seal.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../context.ts';
import { sendJson } from '../replies.ts';

export interface ChamberRoutes {
  readonly seal: ((reason: string | null, accessor: string) => Promise<SealAnswer>) | undefined;
  readonly status: () => Promise<ChamberStatus>;
}

const ADMITTED = { kind: 'scope', namesKey: false, needsSigning: false, orManagement: true, whileStale: true } as const;
/** Break-glass must not fail for want of two braces. */
const SEAL_BODY = { mismatch: 'malformed_body', whenEmpty: {} } as const;

export function mountChamber(app: FastifyInstance, { seal, status }: ChamberRoutes): void {
  mountStatus(app, status);
  if (seal !== undefined) mountSeal(app, seal);
}

function mountStatus(app: FastifyInstance, status: ChamberRoutes['status']): void {
  const config = { access: { ...ADMITTED, scope: 'chamber_status' } } as const;
  app.get('/api/v1/chamber/status', { config }, async (_request, reply) => sendJson(reply, 200, await status()));
}

function mountSeal(app: FastifyInstance, seal: NonNullable<ChamberRoutes['seal']>): void {
  const config = { access: { ...ADMITTED, scope: 'chamber_seal' } } as const;
  app.post('/api/v1/chamber/seal', { config }, async (request, reply) => {
    const { accessor } = callerOf(request);
    const { reason } = readJsonBody(request, sealRequestSchema, SEAL_BODY);
    return sendJson(reply, 200, await seal(reason ?? null, accessor));
  });
}
