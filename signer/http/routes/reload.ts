// GET and POST /reload: the signer reads key folders, static tokens, known clients and TLS files again. The caller
// needs the scope `reload`. The answer does not wait for the end, because thousands of keystores take minutes.

import type { FastifyInstance } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import { RELOAD_ACCEPTED, type ReloadStatus } from '../../api/reload.ts';
import { sendJson } from '../replies.ts';

interface ReloadRoute {
  readonly status: ReloadStatus;
  begin(): boolean;
}

const ACCESS = { kind: 'scope', scope: 'reload', namesKey: false, needsSigning: false } as const;

export function mountReload(app: FastifyInstance, reload: ReloadRoute): void {
  const config = { access: ACCESS } as const;
  app.get('/reload', { config }, async (_request, reply) => sendJson(reply, 200, reload.status));
  app.post('/reload', { config }, async (_request, reply) => {
    if (!reload.begin()) throw new SignerError('reload_in_progress');
    return sendJson(reply, 202, RELOAD_ACCEPTED);
  });
}
