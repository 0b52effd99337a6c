// Slashing protection in one SQLite file, for one signer: the complete history, every commit on disk (WAL,
// synchronous=FULL) before a verdict is given. The file is private, bound to one network and locked by this process.
// The database itself lives in a worker (database-worker.ts).

import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { NEW_STORE, readIncarnations } from '../incarnation.ts';
import { readPart, stageHistories } from '../operations/import.ts';
import { operationsThrough } from '../operations/operations.ts';
import { STEP_ENTRIES, unlessAborted } from '../operations/store.ts';
import type { SlashingBackend } from '../types.ts';
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
import { confirmOurs, DatabaseRefusal, type ExpectedMetadata } from './tables/schema.ts';
import { type DatabaseCalls, type DatabaseWorkerData, packBatch, type ReplyMessage, unpackVerdicts } from './wire.ts';

export interface SqliteOptions {
  /** anti_slashing.path; made when it is missing, its folder is not. */
  readonly path: string;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
  /** 32 bytes derived from the master key, when there is one; copied. */
  readonly integrityKey?: Uint8Array | undefined;
}

export async function openSqliteBackend(options: SqliteOptions, { log }: { log: Log }): Promise<SlashingBackend> {
  const { realPath: path, isNew } = preparePrivateFile(options.path, log);
  refuseMisplaced(path, log);
  if (isNew) log.warn({ path }, NEW_STORE);
  const wasUsed = existsSync(`${path}-lock`);
  const lock = lockDatabase(path, log);
  const closed = readClosedMark(path);
  const genesisValidatorsRoot = Uint8Array.from(Buffer.from(options.genesisValidatorsRoot.slice(2), 'hex'));
  const { integrityKey } = options;
  const client = new DatabaseClient({ path, genesisValidatorsRoot, integrityKey, file: undefined }, log);
  let isInDoubt = isNew && wasUsed; // a new file in the place of one that is gone
  try {
    const { file } = await client.call('open', []);
    client.expectFile(file);
    const { end } = readIncarnations((await client.call('identity', [])).incarnation);
    if (!isNew) isInDoubt = closed === undefined || closed !== end;
    removeClosedMark(path);
  } catch (error) {
    await client.close();
    lock.release();
    const cause = error instanceof Error ? error.cause : undefined;
    const reason = cause instanceof Error ? cause.message : 'the database worker does not start';
    throw unusable(reason, { path, cause: error });
  }
  const checkpoints = checkpointsBesideCommits({ path }, log);
  return sqliteBackend({ client, lock, checkpoints, path, isInDoubt }, options.genesisValidatorsRoot.toLowerCase());
}

interface OpenBackend {
  readonly client: DatabaseClient;
  readonly lock: FileLock;
  readonly checkpoints: Checkpoints;
  readonly path: string;
  readonly isInDoubt: boolean;
}

function sqliteBackend(
  { client, lock, checkpoints, path, ...opened }: OpenBackend,
  genesisValidatorsRoot: string,
): SlashingBackend {
  let { isInDoubt } = opened;
  let transfers = 0;

  return {
    name: 'sqlite',
    batchLimits: { maxMessages: 512, maxInFlight: 1, minIntervalMs: 2 },
    get isInDoubt() {
      return isInDoubt;
    },

    async checkAndRecord(messages, floors) {
      const batch = packBatch(messages, floors);
      const verdicts = unpackVerdicts(await client.call('check', [batch], [batch]));
      checkpoints.recorded(messages.length);
      return verdicts;
    },

    ...operationsThrough((name, given) => client.call(name, given)),

    checkHealth: (signal) => unlessAborted(signal, () => client.call('health', [])),

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

    async jump(floor) {
      const raised = await client.call('jump', [floor]);
      isInDoubt = false;
      return raised;
    },

    status: async () => ({ ...(await client.call('status', [])), genesisValidatorsRoot }),

    /** A database in doubt stays so. */
    async close(waitMs) {
      const closing = { notesEnd: !isInDoubt, ...(waitMs === undefined ? {} : { waitMs }) };
      // whichever is last makes the last checkpoint
      const [end] = await Promise.all([client.close(closing), checkpoints.close(waitMs)]);
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
async function hasEnded(worker: Worker, waitMs: number, onLate: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  worker.once('exit', () => resolve());
  const giveUp = () => {
    onLate();
    void worker.terminate();
    worker.unref();
    resolve();
  };
  const timer = setTimeout(giveUp, Math.min(WORKER_CLOSE_WAIT_MS, waitMs));
  await promise;
  clearTimeout(timer);
}

// What was asked of a worker that died is answered `slashing_unavailable`: it may have been done or not.

/** Doubled up to the largest, and back at the first answer. */
const FIRST_RESTART_MS = 50;
const LARGEST_RESTART_MS = 10_000;

interface PendingCall {
  readonly resolve: (result: never) => void;
  readonly reject: (error: SignerError) => void;
}

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
      worker.postMessage({ id: this.#lastId, call, arguments_ }, transfer);
    });
  }

  async close({ notesEnd = false, waitMs = WORKER_CLOSE_WAIT_MS } = {}): Promise<string | null> {
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
      this.call('close', [notesEnd])
        .then((end) => {
          noted = end;
        })
        .catch(() => undefined);
      this.#worker = undefined;
      await ended;
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

// The look of `server --check` makes no file and leaves none behind: a log or an index that another user than the
// signer's had made would stop the next start. What the last commits of an unclean end say is read by the start alone.

export interface LookOptions extends ExpectedMetadata {
  readonly path: string;
  /** A signer that runs has it open: only what can be said beside it is. */
  readonly isInUse: boolean;
}

/** @returns whether there is a database yet @throws SignerError slashing_unavailable, as opening it would */
export function lookAtDatabase({ path, isInUse, ...expected }: LookOptions, log: Log): 'new' | 'good' {
  if (!existsSync(path)) return 'new';
  const realPath = realpathSync(path);
  try {
    accessSync(realPath, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw unusable('the database file cannot be read and written by this user', { path, cause });
  }
  refuseMisplaced(realPath, log);
  // The lock is asked for where a signer has made one: its file is not made here.
  const lock = !isInUse && existsSync(`${realPath}-lock`) ? lockDatabase(realPath, log) : undefined;
  try {
    return confirmMetadata(realPath, expected);
  } finally {
    lock?.release();
  }
}

function confirmMetadata(realPath: string, expected: ExpectedMetadata): 'new' | 'good' {
  const isClean = !existsSync(`${realPath}-wal`);
  const url = pathToFileURL(realPath);
  url.search = 'immutable=1'; // the one way to read that makes no file beside it; the log is not looked at then
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(url, { readOnly: true });
    const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
    if (tables?.['count'] === 0) return isClean ? 'new' : 'good';
    confirmOurs(connection, expected);
    return 'good';
  } catch (cause) {
    if (cause instanceof DatabaseRefusal) throw unusable(cause.message, { path: realPath, cause });
    if (!isClean) return 'good'; // what is missing may be in the log
    throw unusable('the database cannot be read', { path: realPath, cause });
  } finally {
    connection?.close();
  }
}
