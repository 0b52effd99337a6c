// The file of an import, in temporary tables of its connection: histories stream in without touching what signers use,
// in whatever order and parts, and come out key by key, all parts of a key together.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BlockEntry, VoteEntry } from '../../history/state.ts';
import { historyReducer, type ReducedHistory } from '../../interchange/reduce.ts';
import type { LeftOutEntries, PublicKeyHex, ValidatorHistory } from '../../types.ts';
import type { Connection } from '../connection/connections.ts';
import { keyBytes } from './rows.ts';

/** Rows in one insert at most: preparing them takes a few milliseconds. */
const CHUNK_ROWS = 2_000;

const CREATE = `
  CREATE TEMPORARY TABLE imported_keys
    (public_key bytea NOT NULL, left_out_slot bigint, left_out_source_epoch bigint, left_out_target_epoch bigint);
  CREATE TEMPORARY TABLE imported_blocks
    (public_key bytea, slot bigint, signing_root bytea, place bigint GENERATED ALWAYS AS IDENTITY);
  CREATE TEMPORARY TABLE imported_attestations
    (public_key bytea, source_epoch bigint, target_epoch bigint, signing_root bytea,
     place bigint GENERATED ALWAYS AS IDENTITY)`;

const INDEX = `
  CREATE INDEX ON imported_keys (public_key);
  CREATE INDEX ON imported_blocks (public_key, place);
  CREATE INDEX ON imported_attestations (public_key, place);
  ANALYZE imported_keys, imported_blocks, imported_attestations`;

const STAGE_KEY = 'INSERT INTO imported_keys VALUES ($1, $2, $3, $4)';

const STAGE_BLOCKS = `
  INSERT INTO imported_blocks (public_key, slot, signing_root) SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])`;

const STAGE_VOTES = `
  INSERT INTO imported_attestations (public_key, source_epoch, target_epoch, signing_root)
  SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bytea[])`;

const STAGED_KEY = `
  SELECT max(left_out_slot) AS "blockSlot", max(left_out_source_epoch) AS "sourceEpoch",
         max(left_out_target_epoch) AS "targetEpoch"
  FROM imported_keys WHERE public_key = $1`;

const STAGED_BLOCKS = `
  SELECT slot, signing_root AS "signingRoot", place
  FROM imported_blocks WHERE public_key = $1 AND place > $2 ORDER BY place LIMIT ${CHUNK_ROWS}`;

const STAGED_VOTES = `
  SELECT source_epoch AS "sourceEpoch", target_epoch AS "targetEpoch", signing_root AS "signingRoot", place
  FROM imported_attestations WHERE public_key = $1 AND place > $2 ORDER BY place LIMIT ${CHUNK_ROWS}`;

/** Everything of the stream; resolves with how many entries it named. */
export async function stageAll(
  connection: Connection,
  histories: AsyncIterable<ValidatorHistory>,
): Promise<{ readonly blocks: number; readonly attestations: number }> {
  const named = { blocks: 0, attestations: 0 };
  await connection.query(CREATE);
  for await (const history of histories) {
    named.blocks += history.blocks.length + (history.leftOut?.blocks ?? 0);
    named.attestations += history.attestations.length + (history.leftOut?.attestations ?? 0);
    await stage(connection, history.publicKey, await reduced(history));
  }
  await connection.query(INDEX);
  return named;
}

/** In turns with other work: a history may have very many entries. */
async function reduced(history: ValidatorHistory): Promise<ReducedHistory> {
  const { blocks, attestations, leftOut } = history;
  if (blocks.length + attestations.length <= CHUNK_ROWS) return history;
  const reducer = historyReducer();
  reducer.add({ blocks: [], attestations: [], leftOut });
  for (const chunk of chunks(blocks)) {
    reducer.add({ blocks: chunk, attestations: [] });
    await nextTurn();
  }
  for (const chunk of chunks(attestations)) {
    reducer.add({ blocks: [], attestations: chunk });
    await nextTurn();
  }
  return reducer.result();
}

async function stage(
  connection: Connection,
  publicKey: PublicKeyHex,
  { blocks, attestations, leftOut }: ReducedHistory,
): Promise<void> {
  const key = keyBytes(publicKey);
  const left = [leftOut?.blockSlot ?? null, leftOut?.sourceEpoch ?? null, leftOut?.targetEpoch ?? null];
  await connection.query({ name: 'stage_key', text: STAGE_KEY, values: [key, ...left] });
  for (const chunk of chunks(blocks)) {
    const values = [key, chunk.map(({ slot }) => slot), chunk.map(({ signingRoot }) => signingRoot)];
    await connection.query({ name: 'stage_blocks', text: STAGE_BLOCKS, values });
  }
  for (const chunk of chunks(attestations)) {
    const sources = chunk.map(({ sourceEpoch }) => sourceEpoch);
    const targets = chunk.map(({ targetEpoch }) => targetEpoch);
    const values = [key, sources, targets, chunk.map(({ signingRoot }) => signingRoot)];
    await connection.query({ name: 'stage_votes', text: STAGE_VOTES, values });
  }
}

/** All that the file says of a key, folded to its last entries. */
export async function readStaged(connection: Connection, publicKey: Buffer): Promise<ReducedHistory> {
  const reducer = historyReducer();
  const values = [publicKey];
  // Sent at once; a key with more than a page of entries is rare.
  const [left] = await Promise.all([
    connection.query<LeftOutMarks>({ name: 'staged_key', text: STAGED_KEY, values }),
    readPages<BlockEntry>(connection, { name: 'staged_blocks', text: STAGED_BLOCKS, publicKey }, (blocks) =>
      reducer.add({ blocks, attestations: [] }),
    ),
    readPages<VoteEntry>(connection, { name: 'staged_votes', text: STAGED_VOTES, publicKey }, (attestations) =>
      reducer.add({ blocks: [], attestations }),
    ),
  ]);
  const [marks] = left.rows;
  // How many were left out is counted where they are read; here it decides nothing.
  if (marks !== undefined && Object.values(marks).some((mark) => mark !== null)) {
    reducer.add({ blocks: [], attestations: [], leftOut: { ...marks, blocks: 0, attestations: 0 } });
  }
  return reducer.result();
}

type LeftOutMarks = Omit<LeftOutEntries, 'blocks' | 'attestations'>;

async function readPages<Entry>(
  connection: Connection,
  { name, text, publicKey }: { readonly name: string; readonly text: string; readonly publicKey: Buffer },
  onPage: (page: readonly Entry[]) => void,
): Promise<void> {
  for (let last = 0; ; ) {
    const { rows } = await connection.query<Entry & { place: number }>({ name, text, values: [publicKey, last] });
    onPage(rows);
    last = rows.at(-1)?.place ?? last;
    if (rows.length < CHUNK_ROWS) return;
  }
}

export function chunks<Element>(list: readonly Element[]): (readonly Element[])[] {
  const count = Math.ceil(list.length / CHUNK_ROWS);
  return Array.from({ length: count }, (_, at) => list.slice(at * CHUNK_ROWS, (at + 1) * CHUNK_ROWS));
}
