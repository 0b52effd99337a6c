// The chamber over HTTP (specification/custody.md#sealing): the break-glass seal, mounted only with a signer state, and
// the status of this replica. Each needs its scope or a management token. A sealed signer can authenticate nobody, and
// answers 401.

import type { FastifyInstance } from 'fastify';
import { type ChamberStatus, type SealAnswer, sealRequestSchema } from '../../api/chamber.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../caller.ts';
import { chamberSealRouteSchema, chamberStatusRouteSchema } from '../openapi.ts';
import { sendJson } from '../replies.ts';

export interface ChamberRoutes {
  /** Undefined without a signer state. */
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
  app.get('/api/v1/chamber/status', { config, schema: chamberStatusRouteSchema }, async (_request, reply) =>
    sendJson(reply, 200, await status()),
  );
}

function mountSeal(app: FastifyInstance, seal: NonNullable<ChamberRoutes['seal']>): void {
  const config = { access: { ...ADMITTED, scope: 'chamber_seal' } } as const;
  app.post('/api/v1/chamber/seal', { config, schema: chamberSealRouteSchema }, async (request, reply) => {
    const { accessor } = callerOf(request);
    const { reason } = readJsonBody(request, sealRequestSchema, SEAL_BODY);
    return sendJson(reply, 200, await seal(reason ?? null, accessor));
  });
}
