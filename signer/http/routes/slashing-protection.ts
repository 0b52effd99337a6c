// Slashing protection records over HTTP, as streams of EIP-3076. A caller sees and touches only the keys of its
// policies. A stream holds a connection or a reader of the store for as long as its client takes: they have few places,
// and who takes most of them displaces its own.

import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { canonicalPublicKey } from '../../../common/formats/hex.ts';
import { Places } from '../../../common/formats/places.ts';
import { SignerError, tellingUnlessTold } from '../../api/errors.ts';
import type { SlashingImportAnswer } from '../../api/slashing-protection.ts';
import { type CompiledAccess, evaluate, evaluateBatch } from '../../auth/evaluate.ts';
import { readInterchange, writeInterchange } from '../../slashing/interchange/file.ts';
import { InterchangeError } from '../../slashing/interchange/piece-parser.ts';
import type { RestrainedStore } from '../../slashing/restraints.ts';
import type { ImportConflict, ValidatorHistory } from '../../slashing/types.ts';
import type { Admission } from '../admission.ts';
import { callerOf } from '../context.ts';

export interface SlashingRecords {
  readonly backend: RestrainedStore;
  readonly genesisValidatorsRoot: string;
}

const PATH = '/api/v1/chamber/slashing-protection';
const ACCESS = { kind: 'scope', scope: 'slashing_protection', namesKey: false, needsSigning: false } as const;
const MAX_FILTER_KEYS = 1000;
/** 100,000 keys with the history that pruning leaves; streamed, so this bounds time and disk, not memory. */
const MAX_IMPORT_BYTES = 16 * 1024 ** 3;
const IMPORT_IDLE_SECONDS = 30;
/** Exports and imports. The store has more room: a DELETE of keys exports, too, and takes no place of these. */
export const MAX_TRANSFERS = 6;

export function mountSlashingProtection(
  app: FastifyInstance,
  records: SlashingRecords,
  admission: Pick<Admission, 'readmit'>,
): void {
  const transfers = new Places<Transfer>(MAX_TRANSFERS, (accessor = '') => accessor);
  app.get(PATH, { config: { access: ACCESS } }, async (request, reply) => {
    const { access, accessor } = callerOf(request);
    const wanted = filterOf(request);
    if (wanted !== undefined && !evaluateBatch(access, ACCESS.scope, wanted).allowed) throw new SignerError('denied');
    const visible = allowedOnly(records.backend.exportHistories(wanted), access);
    const text = Readable.from(writeInterchange(visible, records.genesisValidatorsRoot), { objectMode: false });
    const transfer = { displace: () => void text.destroy(new SignerError('overloaded', { hint: DISPLACED })) };
    text.once('close', () => transfers.leave(transfer));
    enter(transfers, transfer, accessor);
    return reply.type('application/json').send(text);
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, stream, done) => done(null, stream));
    const options = { config: { access: ACCESS, streamsBody: true } } as const;
    scope.post(PATH, { ...options, bodyLimit: MAX_IMPORT_BYTES }, async (request, reply) => {
      const transfer = { displace: () => void request.raw.socket.destroy() };
      enter(transfers, transfer, callerOf(request).accessor);
      const settle = (): void => transfers.settle(transfer);
      const answer = await importRecords(request, { ...records, settle }, admission).finally(() =>
        transfers.leave(transfer),
      );
      return reply.type('application/json').send(Buffer.from(JSON.stringify(answer)));
    });
  });
}

interface Transfer {
  /** Its client loses the connection, or the end of the file. */
  displace(): void;
}

const MAY_BE_MERGED = 'some records of the file may be merged, which only refuses more: repeat the request';
const DISPLACED = 'too many files of slashing protection records are under way: end some of yours, and ask again';

/** @throws SignerError `overloaded` when others that cannot be displaced have all places */
function enter(transfers: Places<Transfer>, transfer: Transfer, accessor: string): void {
  const displaced = transfers.enter(transfer, accessor);
  if (displaced === transfer) throw new SignerError('overloaded', { hint: DISPLACED });
  displaced?.displace();
}

async function importRecords(
  request: FastifyRequest,
  { settle, ...records }: SlashingRecords & { readonly settle: () => void },
  { readmit }: Pick<Admission, 'readmit'>,
): Promise<SlashingImportAnswer> {
  const { access } = callerOf(request);
  const acceptsFuture = isFutureAccepted(request);
  const body = request.body instanceof Readable ? request.body : Readable.from([]);
  async function* checked(): AsyncGenerator<ValidatorHistory> {
    for await (const history of readInterchange(limited(request, body), records.genesisValidatorsRoot)) {
      if (!evaluate(access, { scope: ACCESS.scope, publicKey: history.publicKey }).allowed) {
        throw new SignerError('denied', { hint: `nothing was imported: ${history.publicKey}` });
      }
      yield history;
    }
    const refusal = readmit(request); // the backend commits when this ends
    if (refusal !== undefined) throw new SignerError(refusal, { hint: 'nothing was imported' });
    settle(); // the whole file is here: it waits for no client any more
  }
  try {
    const { alreadyPresent, conflicting, ...counts } = await records.backend.importHistories(checked(), {
      acceptsFuture,
    });
    return { ...counts, already_present: alreadyPresent, conflicting: conflicting.map(conflictOf) };
  } catch (error) {
    // A seal and a table out of sight take the right to the store too: they say more than that it is gone.
    const isLost = error instanceof SignerError && error.reason === 'slashing_unbound';
    const refusal = isLost ? readmit(request) : undefined;
    if (refusal !== undefined) throw new SignerError(refusal, { cause: error });
    if (error instanceof InterchangeError)
      throw new SignerError('malformed_body', { hint: `nothing was imported: ${error.message}`, cause: error });
    return tellingUnlessTold(MAY_BE_MERGED)(error);
  } finally {
    // Closing instead would reset the connection, and a client that is still sending would lose the refusal.
    body.resume();
  }
}

/** What shuts a key out is for its operator to say (`strongroom operator slashing import --accept-future`). */
function isFutureAccepted(request: FastifyRequest): boolean {
  const { accept_future: written } = request.query as { accept_future?: unknown };
  if (written === undefined || written === 'true') return written === 'true';
  throw new SignerError('malformed_parameter', { hint: 'accept_future: is not true' });
}

function conflictOf({ publicKey, ...entry }: ImportConflict) {
  if ('slot' in entry) return { public_key: publicKey, slot: entry.slot };
  return { public_key: publicKey, source_epoch: entry.sourceEpoch, target_epoch: entry.targetEpoch };
}

/** Ends a body of unannounced length where the announced one would have been refused, and one that does not go on. */
async function* limited({ raw }: FastifyRequest, body: Readable): AsyncGenerator<Uint8Array> {
  const waitForClient = (): NodeJS.Timeout => setTimeout(() => raw.socket.destroy(), IMPORT_IDLE_SECONDS * 1000);
  let bytes = 0;
  let idle = waitForClient();
  try {
    // Not destroyed when the reader stops early: the refusal still has to go out on its connection.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      clearTimeout(idle);
      bytes += chunk.length;
      if (bytes > MAX_IMPORT_BYTES) throw new SignerError('body_too_large');
      yield chunk;
      idle = waitForClient();
    }
  } finally {
    clearTimeout(idle);
  }
}

async function* allowedOnly(
  histories: AsyncIterable<ValidatorHistory>,
  access: CompiledAccess,
): AsyncGenerator<ValidatorHistory> {
  for await (const history of histories) {
    if (evaluate(access, { scope: ACCESS.scope, publicKey: history.publicKey }).allowed) yield history;
  }
}

function filterOf(request: FastifyRequest): string[] | undefined {
  const { pubkeys } = request.query as { pubkeys?: string | string[] };
  if (pubkeys === undefined) return undefined;
  const texts = [pubkeys].flat().flatMap((list) => list.split(','));
  if (texts.length > MAX_FILTER_KEYS) {
    throw new SignerError('too_many_items', { hint: `pubkeys takes ${MAX_FILTER_KEYS} keys at most` });
  }
  return texts.map((text) => {
    const publicKey = canonicalPublicKey(text.trim());
    if (publicKey === undefined) throw new SignerError('malformed_parameter', { hint: 'pubkeys: not a public key' });
    return publicKey;
  });
}
