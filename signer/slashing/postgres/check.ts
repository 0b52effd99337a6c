// Checks and records one batch in one transaction, of two round trips when no other transaction holds its keys. Every
// row that a verdict rests on is verified; a key whose record fails, or that is held for long, does not touch the
// others.

import { strict as assert } from 'node:assert';
import { type EntryCodes, type HistoryCodes, stateAfter } from '../history/codes.ts';
import { higherMarks, type KeyState, slotOf, targetOf } from '../history/head.ts';
import {
  type Decision,
  decideWithHistory,
  isRolledBack,
  type Judgement,
  judgeBlock,
  judgeVote,
} from '../history/rules.ts';
import { type Head, historyCollector, keyBytes, keyHex } from '../operations/store.ts';
import type {
  BlockProposal,
  DoubtCause,
  Marks,
  PublicKeyHex,
  SlashableMessage,
  SlashingVerdict,
  StoreFloor,
  Vote,
} from '../types.ts';
import { BEGIN_BATCH, type Connection, commit, IMPORT_LOCK, prepared } from './connection/connections.ts';
import type { Lineage } from './connection/lineage.ts';
import {
  blockTable,
  type EntryRow,
  execute,
  executeAndLocate,
  type HeadRow,
  type NewEntry,
  openHeadRow,
  plainArray,
  SELECT_HEADS,
  signHeads,
  voteTable,
} from './tables/rows.ts';
import { addKeys, type StoreReader, type StoreReading } from './tables/store.ts';

export interface CheckTools {
  readonly codes: HistoryCodes;
  readonly store: StoreReader;
  readonly lineage: Lineage;
}

const DAMAGED: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_integrity' };
const HELD: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_unavailable' };
const ROLLED_BACK: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_rollback' };

// A vote that the message surrounds, and one that surrounds it: either is enough to refuse.
const READ_SURROUNDING = `
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch < $3 AND source_epoch > $2 ORDER BY target_epoch DESC LIMIT 1)
  UNION ALL
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch > $3 AND source_epoch < $2 ORDER BY target_epoch LIMIT 1)`;

interface SafeMessage {
  readonly message: SlashableMessage;
  readonly head: Head;
  readonly state: KeyState;
  readonly codes: EntryCodes;
}

/**
 * The verdicts in the order of the messages; a cause: the database may have lost commits, and nothing was decided. On
 * rejection the connection must be closed.
 */
export async function checkBatch(
  connection: Connection,
  tools: CheckTools,
  messages: readonly SlashableMessage[],
  floors: readonly Marks[],
): Promise<SlashingVerdict[] | DoubtCause> {
  const { codes, lineage } = tools;
  const expected = lineage.known;
  const read = await lockAndRead(connection, codes, tools.store, messages);
  const { record, place } = read.store;
  const doubt = lineage.doubt(expected, place, record);
  if (doubt !== undefined) {
    await connection.query('ROLLBACK');
    return doubt;
  }
  const safe: SafeMessage[] = [];
  const answerOf = (message: SlashableMessage, head: Head, decision: Decision | undefined): SlashingVerdict => {
    if (decision === undefined) return DAMAGED;
    if (decision.kind === 'safe' && !decision.repeat) {
      safe.push({ message, head, ...stateAfter(head.state, message, head.publicKey, codes) });
    }
    return decision;
  };
  const verdicts = messages.map((message, index): SlashingVerdict | Promise<SlashingVerdict> => {
    const floor = floors[index];
    assert(floor !== undefined);
    const row = read.heads.get(message.publicKey);
    if (row === undefined) return read.missing.has(message.publicKey) ? DAMAGED : HELD;
    const state = openHeadRow(codes, row);
    if (state === undefined) return DAMAGED;
    if (isRolledBack(higherMarks(record.floor, state.highest), floor)) return ROLLED_BACK;
    const head = { id: row.id, publicKey: row.public_key, state };
    const judgement = judge(codes, read, { head, message }, index);
    if (judgement?.kind !== 'history') return answerOf(message, head, judgement);
    const decided = decideByHistory(connection, codes, { head, message }, record.floor);
    return decided.then((decision) => answerOf(message, head, decision));
  });
  const answers = await Promise.all(verdicts);
  if (answers.includes(ROLLED_BACK)) {
    await connection.query('ROLLBACK');
    return answers.map((verdict) => (verdict.kind === 'safe' ? HELD : verdict));
  }
  const walPosition = await recordAll(connection, tools, safe);
  const recorded = safe.map(({ message }) => message);
  lineage.committed(expected, { ...place, walPosition }, recorded);
  return answers;
}

/** Undefined: a row fails its code, or rows are gone. */
function judge(
  codes: HistoryCodes,
  read: BatchRows,
  { message, head }: Pick<SafeMessage, 'message' | 'head'>,
  index: number,
): Judgement | undefined {
  const { floor } = read.store.record;
  const { state } = head;
  if (message.kind === 'block') {
    const blocks = blockTable.read(codes, head, read.blocks.get(index) ?? []);
    if (blocks === undefined || !reaches(state.highest.slot, blocks.map(slotOf))) return undefined;
    return judgeBlock(message, state, floor, blocks);
  }
  const votes = voteTable.read(codes, head, read.votes.get(index) ?? []);
  if (votes === undefined || !reaches(state.highest.targetEpoch, votes.map(targetOf))) return undefined;
  const atTarget = votes.filter(({ targetEpoch }) => targetEpoch === message.targetEpoch);
  return judgeVote(message, state, floor, atTarget);
}

/** One row is enough to refuse an older vote. */
async function decideByHistory(
  connection: Connection,
  codes: HistoryCodes,
  { message, head }: Pick<SafeMessage, 'message' | 'head'>,
  floor: StoreFloor | null,
): Promise<Decision | undefined> {
  const { state } = head;
  if (message.kind === 'attestation') {
    const values = [head.id, message.sourceEpoch, message.targetEpoch];
    const found = await prepared<EntryRow>(connection, READ_SURROUNDING, values);
    const against = voteTable.read(codes, head, found.rows);
    if (against === undefined) return undefined;
    const judgement = judgeVote(message, state, floor, [], against);
    if (judgement.kind !== 'history') return judgement;
  }
  const { history, sink } = historyCollector();
  const isWhole =
    message.kind === 'block'
      ? await blockTable.readAll(connection, codes, head, sink.block, AT_ONCE)
      : await voteTable.readAll(connection, codes, head, sink.vote, AT_ONCE);
  return isWhole ? decideWithHistory(message, state, floor, history) : undefined;
}

/** Each page comes in a turn of its own already. */
const AT_ONCE = async (): Promise<void> => {};

/** Whether the entries reach the highest mark, and not beyond. */
function reaches(mark: number | null, places: readonly number[]): boolean {
  return mark === null ? places.length === 0 : places.includes(mark) && places.every((place) => place <= mark);
}

/** @returns how far the write-ahead log had come before the commit; null when nothing was to be recorded */
async function recordAll(
  connection: Connection,
  { codes, store }: CheckTools,
  safe: readonly SafeMessage[],
): Promise<number | null> {
  if (safe.length === 0) {
    await commit(connection);
    return null;
  }
  const blocks: NewEntry<BlockProposal>[] = [];
  const votes: NewEntry<Vote>[] = [];
  for (const { message, head, codes: entryCodes } of safe) {
    const { code } = entryCodes;
    if (message.kind === 'block') blocks.push({ id: head.id, entry: { ...message, code } });
    else votes.push({ id: head.id, entry: { ...message, code } });
  }
  const inserts = [
    ...(blocks.length === 0 ? [] : [blockTable.insert(blocks)]),
    ...(votes.length === 0 ? [] : [voteTable.insert(votes)]),
  ];
  const heads = signHeads(codes, safe);
  const inserted = inserts.map((statement) => execute(connection, statement));
  const changed = executeAndLocate(connection, heads, store.questions.walPosition);
  await Promise.all([...inserted, changed, commit(connection)]);
  return changed;
}

// The heads are locked first, and only later statements read the history and the record of the store: under READ
// COMMITTED a history read together with the lock would be older, and two signers could both find a vote safe.

const LOCK_FREE = `${SELECT_HEADS} FOR UPDATE SKIP LOCKED`;
/** Fails after the lock timeout. */
const LOCK_ALL = `${SELECT_HEADS} FOR UPDATE`;

const LOOK_AROUND = `
  SELECT ARRAY(SELECT public_key FROM strongroom.validators WHERE public_key = ANY ($1::bytea[])) AS known,
         pg_try_advisory_xact_lock_shared($2) AS "noImport"`;
/** lock_not_available. */
const LOCK_TIMEOUT = '55P03';

// For each message its entry, and what is at the highest mark of its key (an entry) or beyond (none): lost and
// brought-back rows are noticed where messages normally go.
const readText = (table: string, mark: string, place = mark): string => `
  SELECT m.position, e.*
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS m (public_key, mark, position)
  JOIN strongroom.validators v ON v.public_key = m.public_key
  CROSS JOIN LATERAL (
    (SELECT ${place}, signing_root, code FROM strongroom.${table}
     WHERE validator_id = v.id AND ${mark} = m.mark AND ${mark} < coalesce(v.highest_${mark}, 0))
    UNION ALL
    (SELECT ${place}, signing_root, code FROM strongroom.${table}
     WHERE validator_id = v.id AND ${mark} >= coalesce(v.highest_${mark}, 0) ORDER BY ${mark} DESC LIMIT 2)
  ) e`;
const READ_BLOCKS = readText('blocks', 'slot');
const READ_VOTES = readText('attestations', 'target_epoch', 'source_epoch, target_epoch');

interface BatchRows {
  readonly store: StoreReading;
  readonly heads: ReadonlyMap<PublicKeyHex, HeadRow>;
  readonly blocks: ReadonlyMap<number, readonly EntryRow[]>;
  readonly votes: ReadonlyMap<number, readonly EntryRow[]>;
  /** Keys without a head, which may have been deleted while the list of keys is not the record's. */
  readonly missing: ReadonlySet<PublicKeyHex>;
}

/** An import may wait for keys while it holds others: a key that is held for longer than the lock timeout is left. */
async function lockAndRead(
  connection: Connection,
  codes: HistoryCodes,
  store: StoreReader,
  messages: readonly SlashableMessage[],
): Promise<BatchRows> {
  const free = await readBatch(connection, store, messages, LOCK_FREE);
  if (free.heads.size === messages.length) return free;
  await connection.query('ROLLBACK');
  const keys = messages.map(({ publicKey }) => keyBytes(publicKey));
  const around = await connection.query<{ known: Buffer[]; noImport: boolean }>(LOOK_AROUND, [keys, IMPORT_LOCK]);
  const known = new Set(around.rows[0]?.known.map(keyHex));
  const added = messages.flatMap(({ publicKey }) => (known.has(publicKey) ? [] : [publicKey]));
  const outcome = added.length === 0 ? 'added' : await addKeys(connection, codes, store, added.map(keyBytes));
  const missing = new Set(outcome === 'added' ? [] : added);
  if (around.rows[0]?.noImport === true) {
    const all = await readBatch(connection, store, messages, LOCK_ALL).catch(undefinedAfterLockTimeout);
    if (all !== undefined && all.heads.size + missing.size < messages.length) {
      throw new Error('the head of a key that was added is not there');
    }
    if (all !== undefined) return { ...all, missing };
    await connection.query('ROLLBACK');
  }
  return { ...(await readBatch(connection, store, messages, LOCK_FREE)), missing };
}

function undefinedAfterLockTimeout(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === LOCK_TIMEOUT) return undefined;
  throw error;
}

async function readBatch(
  connection: Connection,
  store: StoreReader,
  messages: readonly SlashableMessage[],
  lock: string,
): Promise<BatchRows> {
  const publicKeys = messages.map(({ publicKey }) => keyBytes(publicKey));
  const blocks = [...messages.entries()].filter(([, { kind }]) => kind === 'block');
  const votes = [...messages.entries()].filter(([, { kind }]) => kind === 'attestation');
  const [, locked, reading, blockRows, voteRows] = await Promise.all([
    connection.query(BEGIN_BATCH),
    prepared<HeadRow>(connection, lock, [publicKeys]),
    store.read(connection),
    readEntries(connection, READ_BLOCKS, blocks),
    readEntries(connection, READ_VOTES, votes),
  ]);
  assert.equal(new Set(messages.map(({ publicKey }) => publicKey)).size, messages.length, 'a key is in a batch once');
  const heads = new Map(locked.rows.map((row) => [keyHex(row.public_key), row]));
  return { store: reading, heads, blocks: blockRows, votes: voteRows, missing: new Set() };
}

/** By the places of the messages in the batch. */
async function readEntries(
  connection: Connection,
  text: string,
  messages: readonly (readonly [index: number, message: SlashableMessage])[],
): Promise<ReadonlyMap<number, readonly EntryRow[]>> {
  if (messages.length === 0) return new Map();
  const publicKeys = messages.map(([, { publicKey }]) => keyBytes(publicKey));
  const marks = messages.map(([, message]) => (message.kind === 'block' ? message.slot : message.targetEpoch));
  const values = [publicKeys, plainArray(marks)];
  const { rows } = await prepared<EntryRow & { position: number }>(connection, text, values);
  return Map.groupBy(rows, ({ position }) => {
    const [index] = messages[position - 1] ?? [];
    assert(index !== undefined);
    return index;
  });
}
