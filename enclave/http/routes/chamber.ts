// The chamber over HTTP (decisions.md section 5): break-glass seal, mounted only with a signer state, and the status of
// this replica. Both are for their scope or for a management token. While sealed, nobody can be authenticated: 401.

import type { FastifyInstance } from 'fastify';
import { type ChamberStatus, type SealAnswer, type SealRequest, sealRequestSchema } from '../../api/chamber.ts';
import { parseStrictJson } from '../../api/strict-json.ts';
import { chamberSealRouteSchema, chamberStatusRouteSchema } from '../openapi.ts';
import { refuse } from '../replies.ts';

export interface ChamberRoutes {
  /** Undefined without a signer state. */
  readonly seal: ((reason: string | null, accessor: string) => Promise<SealAnswer>) | undefined;
  readonly status: () => Promise<ChamberStatus>;
}

const JSON_TYPE = 'application/json; charset=utf-8';

export function mountChamber(app: FastifyInstance, { seal, status }: ChamberRoutes): void {
  mountStatus(app, status);
  if (seal !== undefined) mountSeal(app, seal);
}

function mountStatus(app: FastifyInstance, status: ChamberRoutes['status']): void {
  const config = { access: { ...ADMITTED, scope: 'chamber_status' } } as const;
  app.get('/api/v1/chamber/status', { config, schema: chamberStatusRouteSchema }, async (_request, reply) =>
    reply.type(JSON_TYPE).send(JSON.stringify(await status())),
  );
}

function mountSeal(app: FastifyInstance, seal: NonNullable<ChamberRoutes['seal']>): void {
  const config = { access: { ...ADMITTED, scope: 'chamber_seal' } } as const;
  app.post('/api/v1/chamber/seal', { config, schema: chamberSealRouteSchema }, async (request, reply) => {
    const { caller } = request.context;
    if (caller === undefined) return refuse(request, reply, 'denied');
    const parsed = parseSealRequest(request.body);
    if (parsed === undefined) return refuse(request, reply, 'malformed_body', 'expected {"reason"?: string}');
    return reply.type(JSON_TYPE).send(JSON.stringify(await seal(parsed.reason ?? null, caller.accessor)));
  });
}

const ADMITTED = { kind: 'scope', namesKey: false, needsSigning: false, orManagement: true } as const;

/** No body at all is a seal without a reason: break-glass must not fail for want of two braces. */
function parseSealRequest(body: unknown): SealRequest | undefined {
  if (!(body instanceof Uint8Array) || body.length === 0) return {};
  const json = parseStrictJson(body);
  return json.kind === 'json' ? sealRequestSchema.safeParse(json.value).data : undefined;
}
