// Slashing protection in one SQLite file, for one signer: the complete history, every commit on disk (WAL,
// synchronous=FULL) before a verdict is given. The file is private, bound to one network and locked by this process.
// The database itself lives in a worker (database-worker.ts).

import { strict as assert } from 'node:assert';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { NEW_STORE } from '../new-store.ts';
import type {
  HighWaterMarks,
  ImportOptions,
  ImportSummary,
  PublicKeyHex,
  SlashableMessage,
  SlashingBackend,
  StoreFloor,
  StoreIdentity,
  ValidatorHistory,
  Verdict,
} from '../types.ts';
import { DatabaseClient } from './client.ts';
import { type Checkpoints, checkpointsBesideCommits } from './file/checkpoint.ts';
import { type FileLock, lockDatabase, preparePrivateFile, refuseMisplaced, unusable } from './file/file.ts';
import type { StagedHistory } from './history-text.ts';
import { readHistory, writeHistory } from './history-text.ts';
import { STEP_ENTRIES } from './steps.ts';
import { packBatch, unpackVerdicts } from './wire.ts';

export interface SqliteOptions {
  /** anti_slashing.path; made when it is missing, its folder is not. */
  readonly path: string;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
  /** 32 bytes derived from the master key, when there is one; copied. */
  readonly integrityKey?: Uint8Array | undefined;
}

/** @throws SignerError slashing_unavailable with the reason why the database cannot be used */
export async function openSqliteBackend(options: SqliteOptions, { log }: { log: Log }): Promise<SlashingBackend> {
  const { realPath: path, isNew } = preparePrivateFile(options.path, log);
  refuseMisplaced(path, log);
  if (isNew) log.warn({ path }, NEW_STORE);
  const lock = lockDatabase(path, log);
  const genesisValidatorsRoot = Uint8Array.from(Buffer.from(options.genesisValidatorsRoot.slice(2), 'hex'));
  const { integrityKey } = options;
  const client = new DatabaseClient({ path, genesisValidatorsRoot, integrityKey, file: undefined }, log);
  try {
    const { file, isUpgraded } = await client.call('open', {});
    client.expectFile(file);
    if (isUpgraded)
      log.warn({ path }, 'the slashing database was brought up to date: older programs cannot read it now');
  } catch (error) {
    await client.close();
    lock.release();
    throw unusable(reasonOf(error), { path, cause: error });
  }
  const checkpoints = checkpointsBesideCommits({ path }, log);
  return new SqliteBackend({ client, lock, checkpoints }, options.genesisValidatorsRoot.toLowerCase());
}

interface OpenBackend {
  readonly client: DatabaseClient;
  readonly lock: FileLock;
  readonly checkpoints: Checkpoints;
}

class SqliteBackend implements SlashingBackend {
  readonly name = 'sqlite';
  readonly batchLimits = { maxMessages: 512, maxInFlight: 1, minIntervalMs: 2 };
  readonly #client: DatabaseClient;
  readonly #lock: FileLock;
  readonly #checkpoints: Checkpoints;
  readonly #genesisValidatorsRoot: string;
  /** Imports are decided and applied one after the other. */
  #merging: Promise<unknown> = Promise.resolve();
  #lastTransferId = 0;
  #pruneAfterId = 0;

  constructor({ client, lock, checkpoints }: OpenBackend, genesisValidatorsRoot: string) {
    this.#client = client;
    this.#lock = lock;
    this.#checkpoints = checkpoints;
    this.#genesisValidatorsRoot = genesisValidatorsRoot;
  }

  async checkAndRecord(messages: readonly SlashableMessage[], floors: readonly HighWaterMarks[]): Promise<Verdict[]> {
    const batch = packBatch(messages, floors);
    const verdicts = unpackVerdicts(await this.#client.call('check', { batch }, [batch]));
    this.#checkpoints.recorded(messages.length);
    return verdicts;
  }

  async checkHealth(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const giveUp = () => reject(new SignerError('slashing_unavailable', { cause: signal.reason }));
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await Promise.race([this.#client.call('health', {}), promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async importHistories(
    histories: AsyncIterable<ValidatorHistory>,
    { strategy = 'by_key' }: ImportOptions = {},
  ): Promise<ImportSummary> {
    const importId = this.#nextTransferId();
    try {
      const { parts, blocks, attestations } = await this.#stage(importId, histories);
      const merging = this.#merging.then(() => this.#client.call('merge', { importId, staged: parts, strategy }));
      this.#merging = merging.catch(() => undefined);
      return { ...(await merging), blocks, attestations };
    } catch (error) {
      await this.#client.call('discard', { importId }).catch(() => undefined);
      throw error;
    }
  }

  async *exportHistories(publicKeys?: readonly PublicKeyHex[]): AsyncGenerator<ValidatorHistory> {
    const exportId = this.#nextTransferId();
    await this.#client.call('beginExport', { exportId, publicKeys: publicKeys ?? null });
    try {
      while (true) {
        const histories = await this.#client.call('continueExport', { exportId });
        if (histories.length === 0) return;
        for (const history of histories) yield readHistory(history);
      }
    } finally {
      await this.#client.call('endExport', { exportId }).catch(() => undefined);
    }
  }

  identity(): Promise<StoreIdentity> {
    return this.#client.call('identity', {});
  }

  async advance(atLeast = 0): Promise<number> {
    return (await this.#client.call('raise', { revision: atLeast, floor: null })).revision;
  }

  /** One worker decides batches one after the other: none that began before is undecided when this resolves. */
  jump(floor: StoreFloor, { revision = 0 }: { readonly revision?: number } = {}): Promise<StoreIdentity> {
    return this.#client.call('raise', { revision, floor });
  }

  highestMarks(): Promise<HighWaterMarks> {
    return this.#client.call('highest', {});
  }

  async retire(publicKeys: readonly PublicKeyHex[]): Promise<void> {
    await this.#client.call('retire', { publicKeys });
  }

  reinstate(publicKeys: readonly PublicKeyHex[]): Promise<readonly PublicKeyHex[]> {
    return this.#client.call('reinstate', { publicKeys });
  }

  retiredKeys(publicKeys?: readonly PublicKeyHex[]): Promise<readonly PublicKeyHex[]> {
    return this.#client.call('retired', { publicKeys: publicKeys ?? null });
  }

  async pruneStep(maxEntries: number): Promise<number> {
    assert(Number.isSafeInteger(maxEntries) && maxEntries > 0);
    // Slice by slice until one has something to delete; checks go on between the slices. Nothing is left to do when a
    // whole round found nothing.
    for (let rounds = 0; rounds < 2; ) {
      const { deleted, nextId } = await this.#client.call('prune', { afterId: this.#pruneAfterId, maxEntries });
      this.#pruneAfterId = nextId ?? 0;
      if (deleted > 0) return deleted;
      if (nextId === null) rounds += 1;
    }
    return 0;
  }

  async status() {
    return { ...(await this.#client.call('status', {})), genesisValidatorsRoot: this.#genesisValidatorsRoot };
  }

  async close(waitMs?: number): Promise<void> {
    // whichever is last makes the last checkpoint
    await Promise.all([this.#checkpoints.close(waitMs), this.#client.close(waitMs)]);
    this.#lock.release();
  }

  async #stage(importId: number, histories: AsyncIterable<ValidatorHistory>) {
    const staged = { parts: 0, blocks: 0, attestations: 0 };
    let chunk: StagedHistory[] = [];
    let entries = 0;
    const send = async (): Promise<void> => {
      await this.#client.call('stage', { importId, histories: chunk });
      this.#checkpoints.recorded(entries); // else a commit would make one, of all that came
      staged.parts += chunk.length;
      chunk = [];
      entries = 0;
    };
    for await (const history of histories) {
      staged.blocks += history.blocks.length + (history.leftOut?.blocks ?? 0);
      staged.attestations += history.attestations.length + (history.leftOut?.attestations ?? 0);
      for (const part of partsOf(history)) {
        chunk.push([history.publicKey, writeHistory(part)]);
        entries += 1 + part.blocks.length + part.attestations.length;
        if (entries >= STEP_ENTRIES) await send();
      }
    }
    await send();
    return staged;
  }

  #nextTransferId(): number {
    this.#lastTransferId += 1;
    return this.#lastTransferId;
  }
}

/** No part is more than a step of the worker. */
function* partsOf({ publicKey, blocks, attestations, leftOut }: ValidatorHistory): Generator<ValidatorHistory> {
  yield {
    publicKey,
    blocks: blocks.slice(0, STEP_ENTRIES),
    attestations: attestations.slice(0, STEP_ENTRIES),
    leftOut,
  };
  for (let at = STEP_ENTRIES; at < Math.max(blocks.length, attestations.length); at += STEP_ENTRIES) {
    const end = at + STEP_ENTRIES;
    yield { publicKey, blocks: blocks.slice(at, end), attestations: attestations.slice(at, end) };
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? cause.message : 'the database worker does not start';
}
