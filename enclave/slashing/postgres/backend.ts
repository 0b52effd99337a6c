// Slashing protection in PostgreSQL: the complete history, shared by any number of signers. It trusts the database to
// be durable and to lock as documented, and notices when rows were altered or are gone; it never trusts an answer that
// did not come. The rules are those of rules.ts; the transaction is told in check.ts.

import { strict as assert } from 'node:assert';
import { SignerError } from '../../api/errors.ts';
import { encodeHex } from '../../api/hex.ts';
import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { BatchLimits, PublicKeyHex, SlashingBackend, ValidatorHistory } from '../types.ts';
import { checkBatch } from './check.ts';
import { type Connection, type PostgresConnectionOptions, PostgresConnections } from './connections.ts';
import { exportKeys } from './export.ts';
import { importKeys } from './import.ts';
import { migrate } from './migrate.ts';
import { pruneNextKey } from './prune.ts';
import { type RowCodes, rowCodes } from './rows.ts';

export interface PostgresBackendOptions extends PostgresConnectionOptions {
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** Of the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
}

/**
 * Connect, bring the schema up to date, and bind the database to the network.
 * @throws SignerError slashing_unavailable, with a hint when the database is of another network or program version;
 *         slashing_integrity when its codes were made with another key
 */
export async function openPostgresBackend(
  options: PostgresBackendOptions,
  tools: { readonly log: Log; readonly clock: Clock },
): Promise<SlashingBackend> {
  const codes = rowCodes(options.integrity);
  const connections = new PostgresConnections(options, tools);
  await connections.useUnhurried(async (connection) => {
    await migrate(connection);
    await bind(connection, codes, options.genesisValidatorsRoot);
    const { rows } = await connection.query("SELECT current_setting('fsync') = 'off' AS unsafe");
    if (rows[0]?.unsafe === true)
      tools.log.warn({}, 'the slashing database runs with fsync=off: a crash loses history');
  });
  return postgresBackend(connections, codes, options);
}

/** Larger batches cost latency, more of them at once contend for the same disk. */
const BATCHES_IN_FLIGHT = 2;
const BATCH_SIZE = 256;
const BATCH_INTERVAL_MS = 1;

function postgresBackend(
  connections: PostgresConnections,
  codes: RowCodes,
  options: PostgresBackendOptions,
): SlashingBackend {
  const maxInFlight = Math.min(BATCHES_IN_FLIGHT, options.poolSize);
  const batchLimits: BatchLimits = { maxMessages: BATCH_SIZE, maxInFlight, minIntervalMs: BATCH_INTERVAL_MS };
  let prunedUpTo = 0;
  return {
    name: 'postgres',
    batchLimits,

    checkAndRecord(messages, floors) {
      assert.equal(messages.length, floors.length);
      return connections.use((connection) => checkBatch(connection, codes, messages, floors));
    },

    async checkHealth(signal) {
      signal.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      const abort = () => aborted.reject(new SignerError('slashing_unavailable', { cause: signal.reason }));
      signal.addEventListener('abort', abort, { once: true });
      try {
        await Promise.race([connections.use(confirmWritable), aborted.promise]);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },

    async importHistories(histories, { asMinimal = false } = {}) {
      // A fault of the source is not one of the database: it is passed on as it is.
      const faults: unknown[] = [];
      try {
        return await connections.useUnhurried((one) => importKeys(one, codes, watched(histories, faults), asMinimal));
      } catch (error) {
        throw faults.length > 0 ? faults[0] : error;
      }
    },

    exportHistories: (publicKeys) => exported(connections, codes, publicKeys),

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

    close: () => connections.close(),
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

/** Bind an empty database to the network and to the key of the codes; refuse one that is bound to others. */
async function bind(connection: Connection, codes: RowCodes, genesisValidatorsRoot: Uint8Array): Promise<void> {
  const code = codes.binding(genesisValidatorsRoot);
  await connection.query(
    'INSERT INTO strongroom.binding (genesis_validators_root, code) VALUES ($1, $2) ON CONFLICT DO NOTHING',
    [genesisValidatorsRoot, code],
  );
  const { rows } = await connection.query<{ genesis_validators_root: Buffer; code: Buffer }>(
    'SELECT genesis_validators_root, code FROM strongroom.binding',
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the binding that was written is not there');
  if (!row.genesis_validators_root.equals(genesisValidatorsRoot)) {
    const hint = 'the slashing database is bound to another genesis validators root';
    throw new SignerError('slashing_unavailable', { hint });
  }
  if (!row.code.equals(code)) {
    throw new SignerError('slashing_integrity', { hint: 'the slashing database was written with another key' });
  }
}

/** A standby answers queries too, and cannot record. */
async function confirmWritable(connection: Connection): Promise<void> {
  const { rows } = await connection.query(
    "SELECT current_setting('transaction_read_only') = 'off' AS writable FROM strongroom.binding",
  );
  if (rows[0]?.writable !== true) throw new Error('the slashing database does not accept writes');
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

/** A connection of its own for as long as the reader takes. */
async function* exported(
  connections: PostgresConnections,
  codes: RowCodes,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const session = await connections.openUnhurried();
  try {
    yield* exportKeys(session.connection, codes, publicKeys);
  } catch (error) {
    throw session.fault(error);
  } finally {
    await session.close();
  }
}
