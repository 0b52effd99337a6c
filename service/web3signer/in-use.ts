// A signer that goes on would sign what the import does not know. A running Web3Signer keeps connections open, so any
// session of another program refuses; so does a prepared transaction that holds locks on the tables, and a row that
// changes between two looks. Nothing is seen of sessions of another server, or of a Web3Signer that will be started
// again.

import type { Connection } from '../../signer/slashing/postgres/connection/connections.ts';
import { WEB3SIGNER_TABLES, Web3SignerDatabaseError } from './schema.ts';

/** Of our connections (signer/slashing/postgres/connection/connections.ts): our signers do not write these tables. */
const OWN_NAME = 'strongroom';

// Background workers (autovacuum) have no role. Of sessions of other roles little more than their being there is
// visible.
const OTHER_SESSIONS = `
  SELECT count(*)::int AS sessions FROM pg_stat_activity
  WHERE datname = current_database() AND usesysid IS NOT NULL
    AND application_name IS DISTINCT FROM $1 AND pid <> ALL ($2::int[])`;

// Also of transactions that are prepared and have no session any more; Web3Signer takes advisory locks besides.
const OTHER_LOCKS = `
  SELECT count(DISTINCT l.virtualtransaction)::int AS transactions
  FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.relation = ANY ($3::text[]::regclass[]::oid[]) OR l.locktype = 'advisory')
    AND (l.pid IS NULL
         OR a.usesysid IS NOT NULL AND a.application_name IS DISTINCT FROM $1 AND l.pid <> ALL ($2::int[]))`;

/** @param own the processes of our own sessions. @throws Web3SignerDatabaseError */
export async function assertUnused(connection: Connection, own: readonly number[]): Promise<void> {
  const locks = await connection.query<{ transactions: number }>(OTHER_LOCKS, [OWN_NAME, own, WEB3SIGNER_TABLES]);
  const transactions = locks.rows[0]?.transactions ?? 0;
  if (transactions > 0) {
    const remedy = 'stop Web3Signer and wait for its last transaction; see pg_locks and pg_prepared_xacts';
    throw new Web3SignerDatabaseError(`${transactions} other transactions hold locks on its tables`, remedy);
  }
  const others = await connection.query<{ sessions: number }>(OTHER_SESSIONS, [OWN_NAME, own]);
  const sessions = others.rows[0]?.sessions ?? 0;
  if (sessions > 0) {
    const remedy =
      'stop Web3Signer for good, then end what else is connected to this database (a pool, a monitor, psql); see pg_stat_activity';
    throw new Web3SignerDatabaseError(`${sessions} other sessions are connected to it`, remedy);
  }
}

// Of the entries: how many there are, which, and which transactions wrote them. A row that is inserted, deleted or
// updated, in the middle too, changes one of these sums. The other tables are small and looked at as a whole.
const ENTRIES = "concat_ws('-', count(*), sum(id), sum(xmin::text::bigint))";
const LOOK = `
  SELECT concat_ws('/',
    (SELECT ${ENTRIES} FROM signed_blocks),
    (SELECT ${ENTRIES} FROM signed_attestations),
    (SELECT coalesce(md5(string_agg(v::text, ',' ORDER BY v.id)), 'none') FROM validators v),
    (SELECT coalesce(md5(string_agg(w::text, ',' ORDER BY w.validator_id)), 'none') FROM low_watermarks w),
    (SELECT string_agg(m::text, ',' ORDER BY m.id) FROM metadata m),
    (SELECT string_agg(d::text, ',' ORDER BY d.id) FROM database_version d)) AS look`;

export async function lookAt(connection: Connection): Promise<string> {
  const { rows } = await connection.query<{ look: string }>(LOOK);
  return rows[0]?.look ?? '';
}
