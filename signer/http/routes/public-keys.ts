// GET /api/v1/eth2/publicKeys and highWatermark (specification/signing.md#public-keys). While the set is not complete
// the answer is an error, never a shorter list: clients drop validators that vanish from it.

import type { FastifyInstance } from 'fastify';
import { canSignWith } from '../../auth/evaluate.ts';
import type { KeyStore } from '../../keys/store.ts';
import { callerOf } from '../context.ts';
import { sendJson } from '../replies.ts';

const NO_HIGH_WATERMARK = {};

export function mountPublicKeys(app: FastifyInstance, keys: Pick<KeyStore, 'publicKeys'>): void {
  const access = { kind: 'scope', scope: 'public_keys', namesKey: false, needsSigning: true } as const;
  const options = { config: { access }, exposeHeadRoute: true };
  app.get('/api/v1/eth2/publicKeys', options, async (request, reply) => {
    const { access: rules } = callerOf(request);
    const visible = keys.publicKeys().filter((publicKey) => canSignWith(rules, publicKey));
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(visible));
  });
  const config = { access: { ...access, needsSigning: false } };
  app.get('/api/v1/eth2/highWatermark', { config }, async (_request, reply) => sendJson(reply, 200, NO_HIGH_WATERMARK));
}
