// Reads the whole history out, one key after the other, from one consistent state. Every row is verified, every history
// shown to be whole, and the list of keys compared with the store's record: what was tampered with is not handed on as
// if it were good, and what comes out is never weaker than what is in. Nothing is read of a database that may have lost
// commits: the key that leaves it would take too little along. Entries that pruning would forget next are not written:
// the marks say them.

import { SignerError } from '../../../api/errors.ts';
import type { HistoryCodes } from '../../history/codes.ts';
import { exportedHistory, historyOfFloor } from '../../history/export.ts';
import { keptEntries } from '../../history/kept.ts';
import type { KeyHistory } from '../../history/state.ts';
import type { PublicKeyHex, StoreFloor, ValidatorHistory } from '../../types.ts';
import type { Connection } from '../connection/connections.ts';
import { HEAD_COLUMNS, type HeadRow, keyBytes, keyHex, openHeadRow } from '../tables/rows.ts';
import { isSameList, listKeys } from '../tables/store.ts';
import { readAllBlocks, readAllVotes } from '../tables/whole.ts';
import type { CheckTools } from './check.ts';

/** Heads read at once; the entries are read key by key. */
const PAGE_SIZE = 500;

/** With a snapshot that all statements share, and no right to write. */
const BEGIN_EXPORT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

const PAGE_OF_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators
  WHERE public_key > $1 AND ($2::bytea[] IS NULL OR public_key = ANY ($2)) ORDER BY public_key LIMIT ${PAGE_SIZE}`;

/**
 * Keys without entries are left out, unless the floor of the store speaks of them. Returns `doubtful` before the first
 * key when the database may have lost commits.
 * Throws `slashing_integrity` at the first key whose record fails, and when keys are gone.
 */
export async function* exportKeys(
  connection: Connection,
  { codes, store, lineage }: CheckTools,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory, 'whole' | 'doubtful'> {
  const wanted = publicKeys === undefined ? null : [...new Set(publicKeys)].sort();
  const expected = lineage.known;
  await connection.query(BEGIN_EXPORT);
  const { record, place } = await store.read(connection);
  if (lineage.isDoubtful(expected, place, record)) return 'doubtful';
  const isWholeList = isSameList(record.keys, await listKeys(connection));
  if (wanted === null && !isWholeList) throw headsAreGone();
  const withoutHead = (publicKey: PublicKeyHex | undefined) => {
    if (!isWholeList) throw headsAreGone();
    return publicKey === undefined || record.floor === null ? [] : [{ publicKey, ...historyOfFloor(record.floor) }];
  };
  // Named keys that have no head; the next one to come first.
  const named = (wanted ?? []).toReversed();
  for await (const head of heads(connection, wanted)) {
    const publicKey = keyHex(head.public_key);
    for (; (named.at(-1) ?? publicKey) < publicKey; named.pop()) yield* withoutHead(named.at(-1));
    if (named.at(-1) === publicKey) named.pop();
    const history = await historyOf(connection, codes, head, record.floor);
    if (history.blocks.length > 0 || history.attestations.length > 0) yield { publicKey, ...history };
  }
  for (; named.length > 0; named.pop()) yield* withoutHead(named.at(-1));
  await connection.query('ROLLBACK');
  return 'whole';
}

async function* heads(connection: Connection, wanted: readonly PublicKeyHex[] | null): AsyncGenerator<HeadRow> {
  const keys = wanted?.map(keyBytes) ?? null;
  for (let last: Buffer = Buffer.alloc(0); ; ) {
    const { rows } = await connection.query<HeadRow>(PAGE_OF_HEADS, [last, keys]);
    yield* rows;
    last = rows.at(-1)?.public_key ?? last;
    if (rows.length < PAGE_SIZE) return;
  }
}

function headsAreGone(): SignerError {
  return new SignerError('slashing_integrity', { hint: 'heads of keys are gone from the slashing database' });
}

async function historyOf(
  connection: Connection,
  codes: HistoryCodes,
  head: HeadRow,
  floor: StoreFloor | null,
): Promise<KeyHistory> {
  const state = openHeadRow(codes, head);
  const kept = state === undefined ? undefined : keptEntries(state);
  const areWhole =
    state === undefined || kept === undefined
      ? [false]
      : await Promise.all([
          readAllBlocks(connection, codes, { head, state }, kept.block),
          readAllVotes(connection, codes, { head, state }, kept.vote),
        ]);
  if (kept === undefined || areWhole.includes(false)) {
    throw new SignerError('slashing_integrity', { detail: { public_key: keyHex(head.public_key) } });
  }
  const left = kept.result();
  return exportedHistory(left.state, floor, left.history);
}
