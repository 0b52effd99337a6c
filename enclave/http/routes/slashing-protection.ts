// The slashing protection records over HTTP, for signers without a shell: it exports and imports EIP-3076 files as
// streams. A caller sees and touches only the keys that its policies allow. An import that names another key is refused
// as a whole, and nothing is merged. An import may take hours: when the caller is revoked meanwhile, nothing is
// imported, and a caller that sends nothing for long is cut off.

import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { canonicalPublicKey } from '../../../formats/hex.ts';
import { SignerError } from '../../api/errors.ts';
import type { SlashingImportAnswer } from '../../api/slashing-protection.ts';
import type { CompiledAccess } from '../../auth/evaluate.ts';
import { evaluate, evaluateBatch } from '../../auth/evaluate.ts';
import { InterchangeError } from '../../slashing/interchange/error.ts';
import { readInterchange, writeInterchange } from '../../slashing/interchange/file.ts';
import type { ImportConflict, SlashingBackend, ValidatorHistory } from '../../slashing/types.ts';
import type { Admission } from '../admission.ts';
import { callerOf } from '../caller.ts';
import { slashingExportRouteSchema, slashingImportRouteSchema } from './slashing-protection-openapi.ts';

export interface SlashingRecords {
  readonly backend: Pick<SlashingBackend, 'exportHistories' | 'importHistories'>;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
}

const PATH = '/api/v1/chamber/slashing-protection';
const ACCESS = { kind: 'scope', scope: 'slashing_protection', namesKey: false, needsSigning: false } as const;
/** Keys of the `pubkeys` filter at most. */
const MAX_FILTER_KEYS = 1000;
/** 100,000 keys with the history that pruning leaves; streamed, so this bounds time and disk, not memory. */
const MAX_IMPORT_BYTES = 16 * 1024 ** 3;
/** Between two pieces of a file, while the signer waits for the client. */
const IMPORT_IDLE_SECONDS = 30;

export function mountSlashingProtection(
  app: FastifyInstance,
  records: SlashingRecords,
  admission: Pick<Admission, 'readmit'>,
): void {
  app.get(PATH, { config: { access: ACCESS }, schema: slashingExportRouteSchema }, async (request, reply) => {
    const { access } = callerOf(request);
    const wanted = filterOf(request);
    if (wanted !== undefined && !evaluateBatch(access, ACCESS.scope, wanted).allowed) throw new SignerError('denied');
    const visible = allowedOnly(records.backend.exportHistories(wanted), access);
    const text = Readable.from(writeInterchange(visible, records.genesisValidatorsRoot), { objectMode: false });
    return reply.type('application/json').send(text);
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, stream, done) => done(null, stream));
    const options = { config: { access: ACCESS, streamsBody: true }, schema: slashingImportRouteSchema } as const;
    scope.post(PATH, { ...options, bodyLimit: MAX_IMPORT_BYTES }, async (request, reply) => {
      const answer = await importRecords(request, records, admission);
      return reply.type('application/json').send(Buffer.from(JSON.stringify(answer)));
    });
  });
}

async function importRecords(
  request: FastifyRequest,
  records: SlashingRecords,
  { readmit }: Pick<Admission, 'readmit'>,
): Promise<SlashingImportAnswer> {
  const { access } = callerOf(request);
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
  }
  try {
    const { alreadyPresent, conflicting, ...counts } = await records.backend.importHistories(checked());
    return { ...counts, already_present: alreadyPresent, conflicting: conflicting.map(conflictOf) };
  } catch (error) {
    if (!(error instanceof InterchangeError)) throw error;
    throw new SignerError('malformed_body', { hint: `nothing was imported: ${error.message}`, cause: error });
  } finally {
    // The rest of a refused file is thrown away as it comes: closing instead would reset the connection, and a client
    // that is still sending would lose the refusal.
    body.resume();
  }
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

/** The keys of `?pubkeys=A,B`, which may be given several times. */
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
