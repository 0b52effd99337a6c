// Slashing protection in one SQLite file, for one signer: the complete history, every commit on disk (WAL,
// synchronous=FULL) before a verdict is given. The file is private, bound to one network and locked by this process.
// The database itself lives in a worker (database-worker.ts).

import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { NEW_STORE, readIncarnations } from '../incarnation.ts';
import { readPart, stageHistories } from '../operations/import-text.ts';
import { operationsThrough } from '../operations/operations.ts';
import { STEP_ENTRIES } from '../operations/store.ts';
import type { Doubt, SlashingBackend } from '../types.ts';
import { type Checkpoints, checkpointsBesideCommits } from './checkpoints.ts';
import { DatabaseClient } from './database-client.ts';
import { readClosedMark, removeClosedMark, writeClosedMark } from './file/closed-mark.ts';
import { type FileLock, lockDatabase, preparePrivateFile, refuseMisplaced, unusableFile } from './file/file.ts';
import { packBatch, unpackVerdicts } from './wire.ts';

interface SqliteOptions {
  /** anti_slashing.path; made when it is missing, its folder is not. */
  readonly path: string;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
  /** 32 bytes derived from the master key, when there is one; copied. */
  readonly integrityKey?: Uint8Array | undefined;
  /** A file that was closed longer ago may be an older copy that came back; undefined: no time is known. */
  readonly mostAwayMs?: number | undefined;
}

export async function openSqliteBackend(
  options: SqliteOptions,
  { log, now = systemClock.now }: { readonly log: Log; readonly now?: Clock['now'] },
): Promise<SlashingBackend> {
  const { realPath: path, isNew } = preparePrivateFile(options.path, log);
  refuseMisplaced(path, log);
  if (isNew) log.warn({ path }, NEW_STORE);
  const wasUsed = existsSync(`${path}-lock`);
  const lock = lockDatabase(path, log);
  const closed = readClosedMark(path);
  const genesisValidatorsRoot = Uint8Array.from(Buffer.from(options.genesisValidatorsRoot.slice(2), 'hex'));
  const { integrityKey } = options;
  const client = new DatabaseClient({ path, genesisValidatorsRoot, integrityKey, file: undefined }, log);
  let doubt: Doubt | undefined;
  try {
    const { file } = await client.call('open', []);
    client.expectFile(file);
    const { end } = readIncarnations((await client.call('identity', [])).incarnation);
    if (isNew)
      doubt = wasUsed ? { cause: 'other_file' } : undefined; // in the place of one that is gone
    else if (end === null || closed !== end.number) doubt = { cause: 'unclean_end' };
    else doubt = lateStart(now() - end.at, options);
    removeClosedMark(path);
  } catch (error) {
    await client.close();
    lock.release();
    const cause = error instanceof Error ? error.cause : undefined;
    const reason = cause instanceof Error ? cause.message : 'the database worker does not start';
    throw unusableFile(reason, { path, cause: error });
  }
  const checkpoints = checkpointsBesideCommits({ path }, log);
  return sqliteBackend({ client, lock, checkpoints, path, doubt, now }, options.genesisValidatorsRoot.toLowerCase());
}

/** A folder that is renamed back has its file and its mark. A clock that says a time before the end says nothing. */
function lateStart(awayMs: number, { mostAwayMs }: SqliteOptions): Doubt | undefined {
  if (mostAwayMs === undefined || (awayMs >= 0 && awayMs <= mostAwayMs)) return undefined;
  return { cause: 'late_start', facts: { closed_seconds_ago: Math.round(awayMs / 1000) } };
}

interface OpenBackend {
  readonly client: DatabaseClient;
  readonly lock: FileLock;
  readonly checkpoints: Checkpoints;
  readonly path: string;
  readonly doubt: Doubt | undefined;
  readonly now: Clock['now'];
}

function sqliteBackend(
  { client, lock, checkpoints, path, now, ...opened }: OpenBackend,
  genesisValidatorsRoot: string,
): SlashingBackend {
  let { doubt } = opened;
  let transfers = 0;

  return {
    name: 'sqlite',
    batchLimits: { maxMessages: 512, maxInFlight: 1, minIntervalMs: 2 },
    get doubt() {
      return doubt;
    },

    async checkAndRecord(messages, floors) {
      const batch = packBatch(messages, floors);
      const verdicts = unpackVerdicts(await client.call('check', [batch], [batch]));
      checkpoints.recorded(messages.length);
      return verdicts;
    },

    ...operationsThrough((name, given) => client.call(name, given)),

    checkHealth: async () => void (await client.call('health', [])),

    async importHistories(histories, { strategy = 'by_key' } = {}) {
      const importId = ++transfers;
      try {
        const { parts, blocks, attestations } = await stageHistories(histories, async (chunk) => {
          await client.call('stage', [importId, chunk]);
          checkpoints.recorded(STEP_ENTRIES); // else a commit would make one, of all that came
        });
        const merged = await client.call('merge', [importId, parts, strategy]);
        return { ...merged, blocks, attestations };
      } finally {
        await client.call('discard', [importId]).catch(() => undefined);
      }
    },

    async *exportHistories(publicKeys) {
      const exportId = ++transfers;
      await client.call('beginExport', [exportId, publicKeys]);
      try {
        while (true) {
          const histories = await client.call('continueExport', [exportId]);
          if (histories.length === 0) return;
          for (const [publicKey, history] of histories) yield { publicKey, ...readPart(history) };
        }
      } finally {
        await client.call('endExport', [exportId]).catch(() => undefined);
      }
    },

    async jump(...given) {
      const raised = await client.call('jump', given);
      doubt = undefined;
      return raised;
    },

    status: async () => ({ ...(await client.call('status', [])), genesisValidatorsRoot }),

    /** A database in doubt stays so. */
    async close(waitMs, isInDoubt = false) {
      const endedAt = doubt === undefined && !isInDoubt ? now() : null;
      // whichever is last makes the last checkpoint
      const [end] = await Promise.all([client.close(endedAt, waitMs), checkpoints.close(waitMs)]);
      if (end !== null) writeClosedMark(path, end);
      lock.release();
    },
  };
}
