// One batch of checks against the database, inside one transaction. The usual message lies beyond everything its key
// has signed: one row read, two written.

import type { DatabaseSync } from 'node:sqlite';
import { historyCodes, stateAfter } from '../history/codes.ts';
import { higherMarks, NEW_KEY } from '../history/head.ts';
import {
  type Decision,
  decideWithHistory,
  isBeyondHistory,
  isRolledBack,
  type Judgement,
  judgeBlock,
  judgeVote,
} from '../history/rules.ts';
import type { Head } from '../operations/store.ts';
import type { BlockEntry, SlashableMessage, SlashingVerdict, StoreFloor, VoteEntry } from '../types.ts';
import type { KnownKeys } from './tables/key-list.ts';
import { type SqliteStoreRecord, storeRecord, withKeys } from './tables/record.ts';
import { type EntryTable, type EntryTables, entryTables, headTable, inTransaction, isDamage } from './tables/rows.ts';
import type { DatabaseOptions } from './tables/schema.ts';
import type { PackedCheck } from './wire.ts';

/** Of one check. A key has more only while pruning is behind; what needs its history is 503 until then. */
const MAX_ENTRIES_READ = 20_000;

/** Prepares the statements once; the function checks and records a batch, or throws and has recorded nothing. */
export function batchChecker(connection: DatabaseSync, options: DatabaseOptions, keys: KnownKeys) {
  const { integrity } = options;
  const codes = historyCodes(integrity);
  const heads = headTable(connection, integrity);
  const entries = entryTables(connection, integrity);
  const records = storeRecord(connection, options);

  function checkOne(
    { publicKey, message, floors }: PackedCheck,
    store: SqliteStoreRecord,
  ): [SlashingVerdict, added: boolean] {
    const { floor } = store;
    const known = heads.find(publicKey);
    if (known === undefined) keys.confirmNew(publicKey, store);
    const head = known ?? { id: heads.nextId(), publicKey, state: NEW_KEY };
    if (isRolledBack(higherMarks(floor, head.state.highest), floors)) {
      return [ROLLED_BACK, false];
    }
    const decision = decide(entries, head, message, floor);
    if (decision === undefined) return [UNDECIDED, false];
    if (decision.kind === 'refused' || decision.repeat) return [decision, false];
    record(head, message, known === undefined);
    return [decision, known === undefined];
  }

  /** The entry first: one that does not fit throws and has changed nothing. */
  function record(head: Head, message: SlashableMessage, isNew: boolean): void {
    const isBeyond = isBeyondHistory(message, head.state.highest);
    const after = stateAfter(head.state, message, head.publicKey, codes);
    const insertInto = <Entry extends BlockEntry | VoteEntry>(table: EntryTable<Entry>, entry: Entry): void => {
      if (isBeyond) table.confirmNoneBeyond(head);
      table.insert(head.id, entry, after.codes);
    };
    if (message.kind === 'block') insertInto(entries.blocks, message);
    else insertInto(entries.votes, message);
    const changed = { ...head, state: after.state };
    if (isNew) heads.insert(changed);
    else heads.update(changed);
  }

  return (batch: Iterable<PackedCheck>): SlashingVerdict[] => {
    const verdicts: SlashingVerdict[] = [];
    const checkAll = () => {
      const store = records.read();
      const added: Uint8Array[] = [];
      for (const check of batch) {
        try {
          const [verdict, isNew] = checkOne(check, store);
          verdicts.push(verdict);
          if (isNew) added.push(check.publicKey);
        } catch (error) {
          if (!isDamage(error)) throw error;
          verdicts.push({ kind: 'unavailable', reason: 'slashing_integrity' });
        }
      }
      if (verdicts.includes(ROLLED_BACK)) throw RECORDS_ARE_LOST; // nothing of such a batch is recorded
      const after = withKeys(store, added);
      if (added.length > 0) records.write(after);
      return { added, after };
    };
    try {
      const { added, after } = inTransaction(connection, checkAll);
      if (added.length > 0) keys.added(added, after);
      return verdicts;
    } catch (error) {
      if (error !== RECORDS_ARE_LOST) throw error;
      return verdicts.map((verdict) => (verdict.kind === 'safe' ? UNDECIDED : verdict));
    }
  };
}

const ROLLED_BACK: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_rollback' };
const UNDECIDED: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_unavailable' };
const RECORDS_ARE_LOST = new Error('records are lost');

function decide(
  entries: EntryTables,
  head: Head,
  message: SlashableMessage,
  floor: StoreFloor | null,
): Decision | undefined {
  const judgement = judge(entries, head, message, floor);
  if (judgement.kind !== 'history') return judgement;
  const isBlock = message.kind === 'block';
  if (head.state[isBlock ? 'blocks' : 'attestations'].count > MAX_ENTRIES_READ) return undefined;
  const history = {
    blocks: isBlock ? entries.blocks.all(head) : [],
    attestations: isBlock ? [] : entries.votes.all(head),
  };
  return decideWithHistory(message, head.state, floor, history);
}

function judge(entries: EntryTables, head: Head, message: SlashableMessage, floor: StoreFloor | null): Judgement {
  const { state } = head;
  const isBeyond = isBeyondHistory(message, state.highest);
  if (message.kind === 'block') {
    return judgeBlock(message, state, floor, isBeyond ? [] : entries.blocks.at(head, message.slot));
  }
  if (isBeyond) return judgeVote(message, state, floor, []);
  const atTarget = entries.votes.at(head, message.targetEpoch);
  return judgeVote(message, state, floor, atTarget, atTarget.length > 0 ? [] : entries.votesAgainst(head, message));
}
