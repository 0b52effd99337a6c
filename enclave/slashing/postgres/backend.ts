// Slashing protection in PostgreSQL: the complete history, shared by any number of signers. It trusts the database to
// be durable and to lock as documented, and notices when rows were altered or are gone, and when the database is a copy
// that lost commits; it never trusts an answer that did not come. What is judged is said in history/, the transaction
// of a batch in operations/check.ts.

import { strict as assert } from 'node:assert';
import { encodeHex } from '../../../formats/hex.ts';
import type { Clock } from '../../../observe/clock.ts';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { historyCodes } from '../history/codes.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { JumpFloor } from '../jump.ts';
import { NEW_STORE } from '../new-store.ts';
import type { BatchLimits, OnJump, PublicKeyHex, SlashingBackend, ValidatorHistory, Verdict } from '../types.ts';
import { type Connection, type PostgresConnectionOptions, PostgresConnections } from './connection/connections.ts';
import { BATCHES_IN_FLIGHT } from './connection/pool.ts';
import { identityOfServer, questionsFor, systemIdentifierOf, warnOfUnsafeSettings } from './connection/server.ts';
import { afterDoubt } from './doubt.ts';
import { lineage } from './lineage.ts';
import { type CheckTools, checkBatch } from './operations/check.ts';
import { exportKeys } from './operations/export.ts';
import { importKeys } from './operations/import.ts';
import { advance, highestMarks, identityOf, jump } from './operations/jump.ts';
import { pruneNextKey } from './operations/prune.ts';
import { reinstate, retire, retiredKeys } from './operations/retire.ts';
import { migrate } from './tables/migrate.ts';
import { type StoreReader, storeReader } from './tables/store.ts';
import { checkBinding, stepWork } from './tables/upgrade.ts';

export interface PostgresBackendOptions extends PostgresConnectionOptions {
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** For the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
  /** What the store is raised to when the database turns out to be a copy that may have lost commits. */
  readonly jumpFloor: JumpFloor;
  /** This process raised the store, and not another signer of it. */
  readonly onJump?: OnJump;
}

/**
 * Connect, bring the schema up to date, and bind the database to the network.
 * @throws SignerError slashing_unavailable, with a hint when the database is of another network or program version;
 *         slashing_integrity when its codes were made with another key, or its record fails its code
 */
export async function openPostgresBackend(
  options: PostgresBackendOptions,
  tools: { readonly log: Log; readonly clock: Clock },
): Promise<SlashingBackend> {
  const codes = historyCodes(options.integrity);
  const connections = new PostgresConnections(options, tools);
  const store = await connections.useUnhurried(async (connection): Promise<StoreReader> => {
    await confirmWritable(connection);
    const questions = await questionsFor(connection, tools.log);
    const server = () => identityOfServer(connection, questions);
    const isNew = await migrate(connection, stepWork({ ...options, codes, server }));
    await checkBinding(connection, options);
    if (isNew) tools.log.warn({ database: options.address.database }, NEW_STORE);
    const reader = storeReader(codes, questions, (one) => systemIdentifierOf(one, questions));
    await reader.read(connection);
    await warnOfUnsafeSettings(connection, tools.log);
    return reader;
  });
  return postgresBackend(connections, { codes, store, lineage: lineage() }, options, tools);
}

const BATCH_SIZE = 256;
const BATCH_INTERVAL_MS = 1;

function postgresBackend(
  connections: PostgresConnections,
  tools: CheckTools,
  options: PostgresBackendOptions,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): SlashingBackend {
  const { codes } = tools;
  const maxInFlight = Math.min(BATCHES_IN_FLIGHT, options.poolSize);
  const batchLimits: BatchLimits = { maxMessages: BATCH_SIZE, maxInFlight, minIntervalMs: BATCH_INTERVAL_MS };
  const recover = afterDoubt({ ...options, connections, tools }, { log, clock });
  let prunedUpTo = 0;
  return {
    name: 'postgres',
    batchLimits,

    async checkAndRecord(messages, floors): Promise<Verdict[]> {
      assert.equal(messages.length, floors.length);
      const check = () => connections.use((connection) => checkBatch(connection, tools, messages, floors));
      const verdicts = await check();
      if (verdicts !== 'doubtful') return verdicts;
      await recover();
      const again = await check();
      if (again === 'doubtful') throw new SignerError('slashing_unavailable');
      return again;
    },

    async checkHealth(signal) {
      signal.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      const abort = () => aborted.reject(new SignerError('slashing_unavailable', { cause: signal.reason }));
      signal.addEventListener('abort', abort, { once: true });
      try {
        await Promise.race([connections.use((connection) => confirmUsable(connection, tools)), aborted.promise]);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },

    async identity() {
      const { record } = await connections.use((connection) => tools.store.read(connection));
      return identityOf(record);
    },

    advance: (atLeast) => connections.use((connection) => advance(connection, tools, atLeast)),

    jump: (floor, { revision } = {}) => connections.use((connection) => jump(connection, tools, floor, revision)),

    highestMarks: () => connections.use(highestMarks),

    retire: (publicKeys) => connections.use((connection) => retire(connection, tools, publicKeys)),

    reinstate: (publicKeys) => connections.use((connection) => reinstate(connection, tools, publicKeys)),

    retiredKeys: (publicKeys) => connections.use((connection) => retiredKeys(connection, tools, publicKeys)),

    async importHistories(histories, { strategy = 'by_key' } = {}) {
      // A fault of the source is not one of the database: it is passed on as it is.
      const faults: unknown[] = [];
      try {
        return await connections.useUnhurried((one) => importKeys(one, tools, watched(histories, faults), strategy));
      } catch (error) {
        throw faults.length > 0 ? faults[0] : error;
      }
    },

    exportHistories: (publicKeys) => exported(connections, tools, publicKeys, recover),

    async pruneStep(maxEntries) {
      let deleted = 0;
      for (let rounds = prunedUpTo === 0 ? 1 : 2; deleted < maxEntries && rounds > 0; ) {
        const left = maxEntries - deleted;
        const step = await connections.use((connection) => pruneNextKey(connection, codes, prunedUpTo, left));
        deleted += step.deleted;
        if (step.validatorId === undefined) {
          prunedUpTo = 0;
          rounds -= deleted > 0 ? rounds : 1;
        } else {
          // A key that gave something may have more; one that gave nothing is damaged, and the next one's turn comes.
          prunedUpTo = step.deleted > 0 ? step.validatorId - 1 : step.validatorId;
        }
      }
      return deleted;
    },

    async status() {
      const { rows } = await connections.use((connection) => connection.query<Totals>(TOTALS));
      const genesisValidatorsRoot = encodeHex(options.genesisValidatorsRoot);
      const [totals] = rows;
      assert(totals !== undefined);
      return { ...totals, genesisValidatorsRoot };
    },

    close: (waitMs) => connections.close(waitMs),
  };
}

interface Totals {
  readonly validators: number;
  readonly blocks: number;
  readonly attestations: number;
}

const TOTALS = `
  SELECT count(*) FILTER (WHERE blocks + attestations > 0) AS validators,
         coalesce(sum(blocks), 0)::bigint AS blocks, coalesce(sum(attestations), 0)::bigint AS attestations
  FROM strongroom.validators`;

async function confirmUsable(connection: Connection, { store, lineage }: CheckTools): Promise<void> {
  const expected = lineage.known;
  const [, { place }] = await Promise.all([confirmWritable(connection), store.read(connection)]);
  // Also a signer that has nothing to sign remembers how far the log had come.
  lineage.seen(expected, place);
}

/** A standby answers queries too, and cannot record. */
export async function confirmWritable(connection: Connection): Promise<void> {
  const { rows } = await connection.query("SELECT current_setting('transaction_read_only') = 'off' AS writable");
  if (rows[0]?.writable !== true) {
    throw new SignerError('slashing_unavailable', { hint: 'the slashing database does not accept writes' });
  }
}

async function* watched(
  histories: AsyncIterable<ValidatorHistory>,
  faults: unknown[],
): AsyncGenerator<ValidatorHistory> {
  try {
    yield* histories;
  } catch (error) {
    faults.push(error);
    throw error;
  }
}

/** After a doubt the store is raised first: what was lost is in the file as the floor. */
async function* exported(
  connections: PostgresConnections,
  tools: CheckTools,
  publicKeys: readonly PublicKeyHex[] | undefined,
  recover: () => Promise<void>,
): AsyncGenerator<ValidatorHistory> {
  if ((yield* exportedOnce(connections, tools, publicKeys)) === 'whole') return;
  await recover();
  if ((yield* exportedOnce(connections, tools, publicKeys)) === 'whole') return;
  throw new SignerError('slashing_unavailable');
}

/** A connection of its own for as long as the reader takes. */
async function* exportedOnce(
  connections: PostgresConnections,
  tools: CheckTools,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory, 'whole' | 'doubtful'> {
  const session = await connections.openUnhurried();
  try {
    return yield* exportKeys(session.connection, tools, publicKeys);
  } catch (error) {
    throw session.fault(error);
  } finally {
    await session.close();
  }
}
