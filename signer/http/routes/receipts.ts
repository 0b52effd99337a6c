// The logs of receipts over HTTP (specification/receipts.md#routes): what the storage holds, as it is, of every boot
// that it lists. A client verifies what it gets. Nothing is asked of the storage but paths that a log has.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isReceiptPath } from '../../../common/receipts/tiles.ts';
import { SignerError } from '../../api/errors.ts';
import { proveInclusion, readShown } from '../../receipts/inclusion.ts';
import type { ReceiptLog } from '../../receipts/log.ts';
import type { ReceiptStorage } from '../../receipts/storage.ts';
import { sendJson } from '../replies.ts';

export interface ReceiptRoutes {
  readonly log: Pick<ReceiptLog, 'boot' | 'latestHead'>;
  readonly storage: Pick<ReceiptStorage, 'boots' | 'read'>;
}

const PATH = '/api/v1/receipts';
const ACCESS = { kind: 'scope', scope: 'receipts', namesKey: false, needsSigning: false } as const;
const BOOT = /^[0-9a-f]{32}$/;
const INDEX = /^(?:0|[1-9][0-9]{0,14})$/;
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
  app.get(`${PATH}/inclusion`, { config }, async (request, reply) => {
    const { boot, index } = wantedOf(request, log.boot);
    const found = await fromStorage(() => proveInclusion(storage, boot, index));
    if (found === undefined)
      throw new SignerError('not_found', { hint: 'no kept head covers such an entry, or retention removed it' });
    const { head, entry, proof } = found;
    const proofTexts = proof.map((hash) => hash.toString('base64'));
    return sendJson(reply, 200, { boot, index, entry: entry.toString('base64'), proof: proofTexts, head });
  });
}

function wantedOf({ query }: FastifyRequest, own: string): { readonly boot: string; readonly index: number } {
  const { boot = own, index } = query as { readonly boot?: unknown; readonly index?: unknown };
  if (typeof boot !== 'string' || !BOOT.test(boot)) {
    throw new SignerError('malformed_parameter', { hint: 'boot is 32 hex digits in lower case' });
  }
  if (typeof index !== 'string' || !INDEX.test(index)) {
    throw new SignerError('malformed_parameter', { hint: 'index is the number of an entry, from 0 on' });
  }
  return { boot, index: Number(index) };
}

async function fromStorage<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw new SignerError('receipts_unavailable', { cause: error });
  }
}
