// The logs of receipts over HTTP (specification/receipts.md#routes): what the storage holds, as it is, of every boot
// that it lists. A client verifies what it gets. Nothing is asked of the storage but paths that a log has.

import type { FastifyInstance } from 'fastify';
import { isReceiptPath } from '../../../common/receipts/tiles.ts';
import { SignerError } from '../../api/errors.ts';
import type { ReceiptLog } from '../../receipts/log.ts';
import { readShown } from '../../receipts/shown.ts';
import type { ReceiptStorage } from '../../receipts/storage.ts';
import { sendJson } from '../replies.ts';

export interface ReceiptRoutes {
  readonly log: Pick<ReceiptLog, 'boot' | 'latestHead'>;
  readonly storage: Pick<ReceiptStorage, 'boots' | 'read'>;
}

const PATH = '/api/v1/receipts';
const ACCESS = { kind: 'scope', scope: 'receipts', namesKey: false, needsSigning: false } as const;
const BOOT = /^[0-9a-f]{32}$/;
const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';

export function mountReceipts(app: FastifyInstance, { log, storage }: ReceiptRoutes): void {
  const config = { access: ACCESS } as const;
  app.get(`${PATH}/head`, { config }, async (_request, reply) => {
    if (log.latestHead === undefined) throw new SignerError('receipts_unavailable', { hint: 'no head is kept yet' });
    return reply.type(TEXT).header('cache-control', 'no-store').send(log.latestHead);
  });
  app.get(`${PATH}/boots`, { config }, async (_request, reply) =>
    sendJson(reply, 200, { boot: log.boot, boots: await fromStorage(() => storage.boots()) }),
  );
  app.get(`${PATH}/tiles/:boot/*`, { config }, async ({ params }, reply) => {
    const { boot, '*': path } = params as { readonly boot: string; readonly '*': string };
    if (!BOOT.test(boot) || !isReceiptPath(path)) throw new SignerError('not_found');
    const content = await fromStorage(() => readShown(storage, boot, path));
    if (content === undefined) throw new SignerError('not_found');
    return reply.type(BYTES).header('cache-control', 'no-store').send(content);
  });
}

async function fromStorage<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw new SignerError('receipts_unavailable', { cause: error });
  }
}
