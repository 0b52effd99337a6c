// GET /api/v1/eth2/publicKeys: the keys the caller can sign with, ascending. While the set is not complete it answers
// an error, never a shorter list: clients drop validators that vanish from it (specification/signing.md#public-keys).

import type { FastifyInstance } from 'fastify';
import { canSignWith } from '../../auth/evaluate.ts';
import type { KeyStore } from '../../keys/store.ts';
import { callerOf } from '../caller.ts';
import { publicKeysRouteSchema } from '../openapi.ts';

export function mountPublicKeys(app: FastifyInstance, keys: Pick<KeyStore, 'publicKeys'>): void {
  const access = { kind: 'scope', scope: 'public_keys', namesKey: false, needsSigning: true } as const;
  const options = { config: { access }, schema: publicKeysRouteSchema, exposeHeadRoute: true };
  app.get('/api/v1/eth2/publicKeys', options, async (request, reply) => {
    const { access: rules } = callerOf(request);
    const visible = keys.publicKeys().filter((publicKey) => canSignWith(rules, publicKey));
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(visible));
  });
}
