// Slashing protection in one SQLite file, for one signer: the complete history, every commit on disk (WAL,
// synchronous=FULL) before a verdict is given. The file is private, bound to one network and locked by this process.
// The database itself lives in a worker (database-worker.ts).

import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { inTime } from '../../../common/flow/in-time.ts';
import { type Clock, systemClock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { NEW_STORE, readIncarnations } from '../incarnation.ts';
import { readPart, stageHistories } from '../operations/import.ts';
import { operationsThrough } from '../operations/operations.ts';
import { STEP_ENTRIES } from '../operations/store.ts';
import type { Doubt, SlashingBackend } from '../types.ts';
import type { CallMessage, DatabaseCalls } from './database-worker.ts';
import type { CheckpointData, CheckpointReply, CheckpointRequest } from './file/checkpoint-worker.ts';
import {
  type FileLock,
  type FileName,
  lockDatabase,
  preparePrivateFile,
  readClosedMark,
  refuseMisplaced,
  removeClosedMark,
  unusable,
  writeClosedMark,
} from './file/file.ts';
import { type DatabaseWorkerData, packBatch, type ReplyMessage, unpackVerdicts } from './wire.ts';

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
    throw unusable(reason, { path, cause: error });
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
    async close(waitMs) {
      const endedAt = doubt === undefined ? now() : null;
      // whichever is last makes the last checkpoint
      const [end] = await Promise.all([client.close(endedAt, waitMs), checkpoints.close(waitMs)]);
      if (end !== null) writeClosedMark(path, end);
      lock.release();
    },
  };
}

// Checkpoints beside the commits: SQLite's own come in the middle of a commit, and kept the whole batch waiting for 10
// to 40 ms. Without this SQLite makes them in a commit, when the log has grown to its bound (tables/schema.ts).

/** Recorded between two checkpoints: some 700 pages, so that one is short and the disk is soon free for commits. */
const MESSAGES = 256;

export type Checkpoints = ReturnType<typeof checkpointsBesideCommits>;

/** @param workerUrl tests put a worker here that fails */
export function checkpointsBesideCommits(
  data: CheckpointData,
  log: Log,
  workerUrl: URL = new URL('./file/checkpoint-worker.ts', import.meta.url),
) {
  let worker: Worker | undefined;
  let isOver = false;
  let isRunning = false;
  let failedBefore = false;
  let messagesSince = 0;

  const onReply = ({ error }: CheckpointReply): void => {
    isRunning = false;
    if (error !== undefined && !failedBefore) {
      log.warn({ err: error }, 'a checkpoint of the slashing database failed: its log grows until one succeeds');
    }
    failedBefore = error !== undefined;
  };
  const start = (): Worker => {
    const started = new Worker(workerUrl, {
      workerData: data,
      name: 'slashing checkpoints',
      resourceLimits: WORKER_LIMITS,
    });
    started.on('message', onReply);
    started.on('error', (error) =>
      log.warn({ err: error }, 'checkpoints of the slashing database are made by its commits'),
    );
    started.on('exit', () => {
      isOver = true;
    });
    started.unref();
    return started;
  };

  return {
    /** The worker is started by the first messages that are worth a checkpoint. */
    recorded(messages: number): void {
      messagesSince += messages;
      if (messagesSince < MESSAGES || isRunning || isOver) return;
      messagesSince = 0;
      isRunning = true;
      worker ??= start();
      worker.postMessage('checkpoint' satisfies CheckpointRequest);
    },
    async close(waitMs = WORKER_CLOSE_WAIT_MS): Promise<void> {
      const closing = worker;
      if (closing === undefined || isOver) return;
      isOver = true;
      const ended = hasEnded(closing, waitMs, () =>
        log.warn({}, 'a checkpoint of the slashing database does not end: it is given up'),
      );
      closing.postMessage('close' satisfies CheckpointRequest);
      await ended;
    },
  };
}

/** Closing waits so long for a worker, which may hang on its disk, at most. */
export const WORKER_CLOSE_WAIT_MS = 5_000;
/** What SQLite's workers leave behind is garbage: without a bound they keep as much of it as the main thread does. */
const WORKER_LIMITS = { maxYoungGenerationSizeMb: 6 };

/** Resolves when the worker has exited, or is given up: it is late then, and is told to end at once. */
function hasEnded(worker: Worker, waitMs: number, onLate: () => void): Promise<void> {
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  return inTime(ended, Math.min(WORKER_CLOSE_WAIT_MS, waitMs), () => {
    onLate();
    void worker.terminate();
    worker.unref();
  });
}

// What was asked of a worker that died is answered `slashing_unavailable`: it may have been done or not.

/** Doubled up to the largest, and back at the first answer. */
const FIRST_RESTART_MS = 50;
const LARGEST_RESTART_MS = 10_000;

type PendingCall = Pick<PromiseWithResolvers<never>, 'resolve' | 'reject'>;

class DatabaseClient {
  #data: DatabaseWorkerData;
  readonly #log: Log;
  readonly #pending = new Map<number, PendingCall>();
  #worker: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #restartMs = FIRST_RESTART_MS;
  #lastId = 0;
  #closed = false;

  constructor(data: DatabaseWorkerData, log: Log) {
    // A copy of its own: the key is needed again for every new worker, and wiped at the end.
    this.#data = { ...data, integrityKey: data.integrityKey && Uint8Array.from(data.integrityKey) };
    this.#log = log;
    this.#start();
  }

  /** A worker that is started later refuses another. */
  expectFile(file: FileName): void {
    this.#data = { ...this.#data, file };
  }

  /** @throws SignerError slashing_unavailable or slashing_integrity, the database's error as its cause */
  call<Name extends keyof DatabaseCalls>(
    call: Name,
    arguments_: Parameters<DatabaseCalls[Name]>,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Awaited<ReturnType<DatabaseCalls[Name]>>> {
    const worker = this.#worker;
    if (worker === undefined) {
      return Promise.reject(
        new SignerError('slashing_unavailable', { detail: { worker: this.#closed ? 'closed' : 'starting' } }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      worker.postMessage({ id: this.#lastId, call, arguments_ } satisfies CallMessage, transfer);
    });
  }

  /** @param endedAt noted in the record; null: nothing is @returns the number of the end, null: it is not noted */
  async close(endedAt: number | null = null, waitMs = WORKER_CLOSE_WAIT_MS): Promise<string | null> {
    let noted: string | null = null;
    if (this.#closed) return noted;
    this.#closed = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = hasEnded(worker, waitMs, () => {
        this.#log.error({}, 'the slashing database worker does not answer: it is given up');
        this.#rejectPending({ worker: 'given up' });
      });
      const note = this.call('close', [endedAt]).catch(() => null);
      this.#worker = undefined;
      await ended;
      noted = await note;
    }
    this.#data.integrityKey?.fill(0);
    return noted;
  }

  #start(): void {
    const worker = new Worker(new URL('./database-worker.ts', import.meta.url), {
      workerData: { ...this.#data, integrityKey: this.#data.integrityKey && Uint8Array.from(this.#data.integrityKey) },
      name: 'slashing database',
      resourceLimits: WORKER_LIMITS,
    });
    let fault: unknown;
    worker.on('message', (reply: ReplyMessage) => this.#answer(reply));
    worker.on('error', (error) => {
      fault = error;
    });
    // An answer that cannot be read is an answer that never comes: only an end of the worker settles its call.
    worker.on('messageerror', (error) => {
      fault = error;
      void worker.terminate();
    });
    worker.on('exit', () => this.#ended(worker, fault));
    this.#worker = worker;
  }

  #answer(reply: ReplyMessage): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    this.#restartMs = FIRST_RESTART_MS;
    if ('reason' in reply) {
      const { reason, error, hint } = reply;
      pending?.reject(new SignerError(reason, { cause: error, ...(hint === undefined ? {} : { hint }) }));
      return;
    }
    // The worker answers each call with the result of its name (wire.ts).
    pending?.resolve(reply.result as never);
  }

  #rejectPending(detail: Readonly<Record<string, unknown>>, cause?: unknown): void {
    for (const { reject } of this.#pending.values()) {
      reject(new SignerError('slashing_unavailable', { cause, detail }));
    }
    this.#pending.clear();
  }

  #ended(worker: Worker, fault: unknown): void {
    this.#rejectPending({ worker: 'ended' }, fault);
    if (this.#closed || this.#worker !== worker) return;
    this.#worker = undefined;
    this.#log.error(
      { err: fault, restart_ms: this.#restartMs },
      'the slashing database worker died: it is started again',
    );
    this.#restart = setTimeout(() => this.#start(), this.#restartMs);
    this.#restartMs = Math.min(this.#restartMs * 2, LARGEST_RESTART_MS);
  }
}
