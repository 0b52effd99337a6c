// Checks and records one batch in one transaction, of two round trips when nobody else holds its keys. What is read and
// locked is said in batch.ts, what is judged in history/judge.ts. Every row that a verdict rests on is verified; a key
// whose record fails, or that is held for long, is answered by itself and does not touch the others.

import { strict as assert } from 'node:assert';
import type { EntryCodes, HistoryCodes } from '../../history/codes.ts';
import { decideWithHistory, type Judgement, judgeBlock, judgeVote, stateAfter } from '../../history/judge.ts';
import { holdsForgotten } from '../../history/prune.ts';
import { type Decision, isRolledBack } from '../../history/rules.ts';
import {
  type BlockEntry,
  effectiveHighest,
  type KeyHistory,
  type KeyState,
  type VoteEntry,
} from '../../history/state.ts';
import type { BlockProposal, HighWaterMarks, SlashableMessage, StoreFloor, Verdict, Vote } from '../../types.ts';
import { type Connection, commit } from '../connection/connections.ts';
import type { Lineage } from '../lineage.ts';
import { execute, executeAndLocate, insertBlocks, insertVotes, type NewEntry, signHeads } from '../tables/record.ts';
import { type BlockRow, type HeadRow, openHeadRow, readBlockRows, readVoteRows, type VoteRow } from '../tables/rows.ts';
import type { StoreReader } from '../tables/store.ts';
import { type KeyToRead, readAllBlocks, readAllVotes } from '../tables/whole.ts';
import { type BatchRows, lockAndRead } from './batch.ts';

/** What a batch needs beside its connection. */
export interface CheckTools {
  readonly codes: HistoryCodes;
  readonly store: StoreReader;
  readonly lineage: Lineage;
}

const DAMAGED: Verdict = { kind: 'unavailable', reason: 'slashing_integrity' };
const HELD: Verdict = { kind: 'unavailable', reason: 'slashing_unavailable' };
const ROLLED_BACK: Verdict = { kind: 'unavailable', reason: 'slashing_rollback' };

// A vote that the message surrounds, and one that surrounds it: either is enough to refuse.
const READ_SURROUNDING = `
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch < $3 AND source_epoch > $2 ORDER BY target_epoch DESC LIMIT 1)
  UNION ALL
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch > $3 AND source_epoch < $2 ORDER BY target_epoch LIMIT 1)`;

/** A key's part of a batch, whose head passed its code. */
interface Case<Message, Row> {
  readonly message: Message;
  readonly head: HeadRow;
  readonly state: KeyState;
  readonly floor: StoreFloor | null;
  /** The rows at the message's slot or target, and at the key's highest mark. */
  readonly rows: readonly Row[];
}

/** A safe message with what is to be written for it. */
interface SafeMessage {
  readonly message: SlashableMessage;
  readonly head: HeadRow;
  readonly state: KeyState;
  readonly codes: EntryCodes;
}

/**
 * The verdicts in the order of the messages; `doubtful`: the database may have lost commits, and nothing was decided.
 * On rejection the connection must be closed.
 */
export async function checkBatch(
  connection: Connection,
  tools: CheckTools,
  messages: readonly SlashableMessage[],
  floors: readonly HighWaterMarks[],
): Promise<Verdict[] | 'doubtful'> {
  const { codes, lineage } = tools;
  const expected = lineage.known;
  const read = await lockAndRead(connection, codes, tools.store, messages);
  const { record, place } = read.store;
  if (lineage.isDoubtful(expected, place, record)) {
    await connection.query('ROLLBACK');
    return 'doubtful';
  }
  const safe: SafeMessage[] = [];
  const answerOf = (message: SlashableMessage, { head, state }: KeyToRead, decision: Decision | undefined): Verdict => {
    if (decision === undefined) return DAMAGED;
    if (decision.kind === 'safe' && !decision.repeat) {
      safe.push({ message, head, ...stateAfter(state, message, head.public_key, codes) });
    }
    return decision;
  };
  const verdicts = messages.map((message, index): Verdict | Promise<Verdict> => {
    const floor = floors[index];
    assert(floor !== undefined);
    const head = read.heads.get(message.publicKey);
    if (head === undefined) return read.missing.has(message.publicKey) ? DAMAGED : HELD;
    const state = openHeadRow(codes, head);
    if (state === undefined) return DAMAGED;
    if (isRolledBack(effectiveHighest(state, record.floor), floor)) return ROLLED_BACK;
    const key = { head, state };
    const judgement = judge(codes, read, { ...key, message, index });
    if (judgement?.kind !== 'history') return answerOf(message, key, judgement);
    const decided = decideByHistory(connection, codes, { ...key, message, floor: record.floor });
    return decided.then((decision) => answerOf(message, key, decision));
  });
  const answers = await Promise.all(verdicts);
  const walPosition = await recordAll(connection, tools, safe);
  lineage.committed(
    expected,
    { ...place, walPosition },
    safe.map(({ message }) => message),
  );
  return answers;
}

/** Undefined when the record of the key is damaged; `history` when what was read of it does not decide. */
function judge(
  codes: HistoryCodes,
  read: BatchRows,
  { message, index, ...key }: KeyToRead & { readonly message: SlashableMessage; readonly index: number },
): Judgement | undefined {
  const { floor } = read.store.record;
  return message.kind === 'block'
    ? judgeBlockRows(codes, { ...key, message, floor, rows: read.blocks.get(index) ?? [] })
    : judgeVoteRows(codes, { ...key, message, floor, rows: read.votes.get(index) ?? [] });
}

function judgeBlockRows(
  codes: HistoryCodes,
  { message, head, state, floor, rows }: Case<BlockProposal, BlockRow>,
): Judgement | undefined {
  const blocks = readBlockRows(codes, head.public_key, rows)?.entries;
  const slots = blocks?.map(({ slot }) => slot);
  if (blocks === undefined || slots === undefined || !reaches(state.highest.blockSlot, slots)) return undefined;
  if (holdsForgotten(state, { blocks, attestations: [] })) return undefined;
  const atSlot = blocks.find(({ slot }) => slot === message.slot);
  return judgeBlock(message, state, floor, atSlot);
}

function judgeVoteRows(
  codes: HistoryCodes,
  { message, head, state, floor, rows }: Case<Vote, VoteRow>,
): Judgement | undefined {
  const votes = readVoteRows(codes, head.public_key, rows)?.entries;
  const targets = votes?.map(({ targetEpoch }) => targetEpoch);
  if (votes === undefined || targets === undefined || !reaches(state.highest.targetEpoch, targets)) return undefined;
  if (holdsForgotten(state, { blocks: [], attestations: votes })) return undefined;
  const atTarget = votes.filter(({ targetEpoch }) => targetEpoch === message.targetEpoch);
  return judgeVote(message, state, floor, atTarget);
}

interface OlderMessage extends KeyToRead {
  readonly message: SlashableMessage;
  readonly floor: StoreFloor | null;
}

/**
 * Rare: an older message. One row is enough to refuse a vote; that none stands against it is known of a whole history.
 */
async function decideByHistory(
  connection: Connection,
  codes: HistoryCodes,
  { message, floor, ...key }: OlderMessage,
): Promise<Decision | undefined> {
  const { head, state } = key;
  if (message.kind === 'attestation') {
    const values = [head.id, message.sourceEpoch, message.targetEpoch];
    const found = await connection.query<VoteRow>({ name: 'surrounding_votes', text: READ_SURROUNDING, values });
    const against = readVoteRows(codes, head.public_key, found.rows)?.entries;
    if (against === undefined || holdsForgotten(state, { blocks: [], attestations: against })) return undefined;
    const judgement = judgeVote(message, state, floor, [], against);
    if (judgement.kind !== 'history') return judgement;
  }
  const history = await readKind(connection, codes, message.kind, key);
  return history === undefined ? undefined : decideWithHistory(message, state, floor, history);
}

async function readKind(
  connection: Connection,
  codes: HistoryCodes,
  kind: SlashableMessage['kind'],
  key: KeyToRead,
): Promise<KeyHistory | undefined> {
  const blocks: BlockEntry[] = [];
  const attestations: VoteEntry[] = [];
  const isWhole =
    kind === 'block'
      ? await readAllBlocks(connection, codes, key, (entry) => void blocks.push(entry))
      : await readAllVotes(connection, codes, key, (entry) => void attestations.push(entry));
  return isWhole ? { blocks, attestations } : undefined;
}

/** Whether the entries reach the highest mark, and not beyond. */
function reaches(mark: number | null, places: readonly number[]): boolean {
  return mark === null ? places.length === 0 : places.includes(mark) && places.every((place) => place <= mark);
}

/** Resolves with how far the write-ahead log had come before the commit; null when nothing was to be recorded. */
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
    ...(blocks.length === 0 ? [] : [insertBlocks(blocks)]),
    ...(votes.length === 0 ? [] : [insertVotes(votes)]),
  ];
  const heads = signHeads(codes, safe);
  // Sent at once and executed in order.
  const inserted = inserts.map((statement) => execute(connection, statement));
  const changed = executeAndLocate(connection, heads, store.questions.walPosition);
  await Promise.all([...inserted, changed, commit(connection)]);
  return changed;
}
