// Merges histories in one transaction: they are staged first (tables/stage.ts), and then merged key by key in ascending
// order, the order in which batches lock, so that neither waits for the other in a circle. One import merges at a time,
// and batches can tell that one does: they answer its keys with 503 and do not wait for its commit. A key whose
// recorded history fails its codes, or is not whole, stops the whole import.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { SignerError } from '../../../api/errors.ts';
import { listConflicts } from '../../conflicts.ts';
import { type MergedKey, mergeKey } from '../../history/merge.ts';
import type { ImportConflict, ImportSummary, MergeStrategy, StoreFloor, ValidatorHistory } from '../../types.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { BEGIN, IMPORT_LOCK } from '../connection/transactions.ts';
import { addKeys } from '../tables/keys.ts';
import { execute, insertBlocks, insertVotes, type Statement, updateHeads } from '../tables/record.ts';
import { HEAD_COLUMNS, type HeadRow, keyHex, openHeadRow } from '../tables/rows.ts';
import { chunks, readStaged, stageAll } from '../tables/stage.ts';
import { readHistory } from '../tables/whole.ts';
import type { CheckTools } from './check.ts';

/** Keys that are locked in one statement. */
const PAGE_KEYS = 500;
/** Keys that are merged beside each other: their histories are in memory at the same time. */
const KEYS_AT_ONCE = 8;
/** Entries of a key, recorded and imported, that are merged and written in the turn in which they were read. */
const SHORT_ENTRIES = 200;

const PAGE_OF_STAGED_KEYS = `
  SELECT DISTINCT public_key FROM imported_keys WHERE public_key > $1 ORDER BY public_key LIMIT ${PAGE_KEYS}`;

const PAGE_OF_NEW_KEYS = `
  SELECT DISTINCT public_key FROM imported_keys AS new
  WHERE public_key > $1 AND NOT EXISTS (SELECT FROM strongroom.validators v WHERE v.public_key = new.public_key)
  ORDER BY public_key LIMIT ${PAGE_KEYS}`;

const LOCK_PAGE = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators
  WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key FOR UPDATE`;

const CONTRADICT_BLOCKS = `
  UPDATE strongroom.blocks b SET signing_root = NULL, code = new.code
  FROM unnest($2::bigint[], $3::bytea[]) AS new (slot, code) WHERE b.validator_id = $1 AND b.slot = new.slot`;

const CONTRADICT_VOTES = `
  UPDATE strongroom.attestations a SET signing_root = NULL, code = new.code
  FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS new (source_epoch, target_epoch, code)
  WHERE a.validator_id = $1 AND a.target_epoch = new.target_epoch AND a.source_epoch = new.source_epoch`;

/** The connection must be closed afterwards. On rejection nothing was changed, but keys may have got empty heads. */
export async function importKeys(
  connection: Connection,
  { codes, store }: Pick<CheckTools, 'codes' | 'store'>,
  histories: AsyncIterable<ValidatorHistory>,
  strategy: MergeStrategy,
): Promise<ImportSummary> {
  const named = await stageAll(connection, histories);
  const summary = { validators: 0, ...named, alreadyPresent: 0, conflicts: 0 };
  let listed: readonly ImportConflict[] = [];
  // Committed at once, as batches do it: a head that is not yet committed would hold up everybody who adds it too.
  for await (const keys of pages(connection, PAGE_OF_NEW_KEYS)) {
    if ((await addKeys(connection, codes, store, keys.map(keyHex))) === 'damaged') {
      throw new SignerError('slashing_integrity', { hint: 'heads of keys are gone from the slashing database' });
    }
  }
  const inTurn = turns();
  await connection.query(BEGIN);
  await connection.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
  for await (const keys of pages(connection, PAGE_OF_STAGED_KEYS)) {
    const locked = await connection.query<HeadRow>(LOCK_PAGE, [keys]);
    if (locked.rows.length !== keys.length) throw new Error('the head of a key that was added is not there');
    // Read again for each page, after its keys are locked: what a jump refuses meanwhile is no repeat afterwards.
    const { floor } = (await store.read(connection)).record;
    for (let at = 0; at < locked.rows.length; at += KEYS_AT_ONCE) {
      const heads = locked.rows.slice(at, at + KEYS_AT_ONCE);
      // On one connection: what is asked for each waits for no other.
      const merged = await Promise.all(
        heads.map((head) => mergeOne(connection, codes, { head, floor, strategy, inTurn })),
      );
      for (const { publicKey, alreadyPresent, conflicts, conflicting } of merged) {
        summary.validators += 1;
        summary.alreadyPresent += alreadyPresent;
        summary.conflicts += conflicts;
        listed = listConflicts(listed, keyHex(publicKey), conflicting);
      }
    }
  }
  await commit(connection);
  return { ...summary, conflicting: listed };
}

async function* pages(connection: Connection, text: string): AsyncGenerator<Buffer[]> {
  let last: Buffer = Buffer.alloc(0);
  for (;;) {
    const { rows } = await connection.query<{ public_key: Buffer }>(text, [last]);
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows.map(({ public_key: publicKey }) => publicKey);
    last = end.public_key;
  }
}

interface KeyOfImport {
  readonly head: HeadRow;
  readonly floor: StoreFloor | null;
  readonly strategy: MergeStrategy;
  readonly inTurn: InTurn;
}

type InTurn = <Result>(work: () => Result | Promise<Result>) => Promise<Result>;

/** One work after the other, each in a turn of the event loop of its own. */
function turns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(() => nextTurn()).then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

const atOnce: InTurn = async (work) => work();

async function mergeOne(
  connection: Connection,
  codes: CheckTools['codes'],
  { head, floor, strategy, inTurn }: KeyOfImport,
): Promise<MergedKey & { readonly publicKey: Buffer }> {
  const { id, public_key: publicKey } = head;
  const state = openHeadRow(codes, head);
  const [recorded, imported] = await Promise.all([
    state === undefined ? undefined : readHistory(connection, codes, { head, state }),
    readStaged(connection, publicKey),
  ]);
  if (state === undefined || recorded === undefined) {
    throw new SignerError('slashing_integrity', { detail: { public_key: keyHex(publicKey) } });
  }
  const lists = [recorded.blocks, recorded.attestations, imported.blocks, imported.attestations];
  const isLong = lists.reduce((sum, { length }) => sum + length, 0) > SHORT_ENTRIES;
  const turn = isLong ? inTurn : atOnce;
  const merged = await turn(() => mergeKey({ publicKey, state, recorded, floor }, imported, strategy, codes));

  const { added, contradicted } = merged;
  const statements = [
    ...chunks(added.blocks).map((chunk) => insertBlocks(chunk.map((entry) => ({ id, entry })))),
    ...chunks(added.attestations).map((chunk) => insertVotes(chunk.map((entry) => ({ id, entry })))),
    ...chunks(contradicted.blocks).map((chunk) => contradictBlocks(id, chunk)),
    ...chunks(contradicted.attestations).map((chunk) => contradictVotes(id, chunk)),
    updateHeads(codes, [{ head, state: merged.state }]),
  ];
  await Promise.all(statements.map((statement) => turn(() => execute(connection, statement))));
  return { ...merged, publicKey };
}

function contradictBlocks(id: HeadRow['id'], blocks: MergedKey['contradicted']['blocks']): Statement {
  const values = [id, blocks.map(({ slot }) => slot), blocks.map(({ code }) => code)];
  return { name: 'contradict_blocks', text: CONTRADICT_BLOCKS, values, rowCount: blocks.length };
}

function contradictVotes(id: HeadRow['id'], votes: MergedKey['contradicted']['attestations']): Statement {
  const [sources, targets] = [votes.map(({ sourceEpoch }) => sourceEpoch), votes.map(({ targetEpoch }) => targetEpoch)];
  const values = [id, sources, targets, votes.map(({ code }) => code)];
  return { name: 'contradict_votes', text: CONTRADICT_VOTES, values, rowCount: votes.length };
}
