// A complete slashing store in memory, behind the same seam as sqlite and postgres: the reference for tests that are
// not about stores. It passes the contract of every store; it has no codes to fail and no disk to fill. One operation
// runs at a time, so nothing is ever half done.

import { randomBytes } from 'node:crypto';
import { oneAfterTheOther } from '../../common/flow/turns.ts';
import { SignerError } from '../../signer/api/errors.ts';
import {
  BLOCKS,
  type Coded,
  type EntryKind,
  historyCodes,
  rowIntegrity,
  stateAfter,
  VOTES,
} from '../../signer/slashing/history/codes.ts';
import { higherMarks, lowestOf, NEW_KEY } from '../../signer/slashing/history/head.ts';
import type { CodedEntries } from '../../signer/slashing/history/merge.ts';
import { decideWithHistory, isRolledBack } from '../../signer/slashing/history/rules.ts';
import { NO_INCARNATION } from '../../signer/slashing/incarnation.ts';
import { exportHistories } from '../../signer/slashing/operations/export.ts';
import { mergeStaged } from '../../signer/slashing/operations/import.ts';
import { readPart, type StagedText, stageHistories } from '../../signer/slashing/operations/import-text.ts';
import { storeOperations } from '../../signer/slashing/operations/operations.ts';
import {
  type CompleteStore,
  type Head,
  keyBytes,
  keyHex,
  type Rows,
  type StagedImport,
  type WritableRows,
} from '../../signer/slashing/operations/store.ts';
import type {
  BlockEntry,
  Marks,
  SlashableMessage,
  SlashingBackend,
  SlashingVerdict,
  StoreIdentity,
  VoteEntry,
} from '../../signer/slashing/types.ts';

/** Never changed in place: a snapshot keeps what it has seen. */
interface Key {
  readonly head: Head;
  readonly blocks: readonly BlockEntry[];
  readonly attestations: readonly VoteEntry[];
}

interface Contents {
  readonly keys: ReadonlyMap<string, Key>;
  readonly record: StoreIdentity;
}

/** Outlives the backends that are opened on it. */
export interface MemoryRecords {
  readonly genesisValidatorsRoot: string;
  readonly inTurn: ReturnType<typeof oneAfterTheOther>;
  contents: Contents;
}

/** @param genesisValidatorsRoot `0x` and 64 hex digits */
export function newMemoryRecords(genesisValidatorsRoot: string): MemoryRecords {
  const record = { id: randomBytes(16).toString('hex'), incarnation: NO_INCARNATION, floor: null };
  return { genesisValidatorsRoot, inTurn: oneAfterTheOther(), contents: { keys: new Map(), record } };
}

export function memoryBackend(records: MemoryRecords): SlashingBackend {
  let isClosed = false;
  const alone = <Result>(work: () => Promise<Result>): Promise<Result> =>
    records.inTurn(async () => {
      if (isClosed) throw new SignerError('slashing_unavailable', { hint: 'the store is closed' });
      const before = records.contents;
      try {
        return await work();
      } catch (error) {
        records.contents = before;
        throw error;
      }
    });
  const store = memoryStore(records, alone);
  return {
    name: 'sqlite', // a store in memory has no name of its own
    batchLimits: { maxMessages: 512, maxInFlight: 1, minIntervalMs: 0 },
    checkAndRecord: (messages, floors) => alone(async () => checked(records, store, messages, floors)),
    ...storeOperations(store),
    checkHealth: () => alone(async () => undefined),
    async importHistories(histories, { strategy = 'by_key' } = {}) {
      const parts: StagedText[] = [];
      const { blocks, attestations } = await stageHistories(histories, async (chunk) => void parts.push(...chunk));
      return { ...(await mergeStaged(store, stagedIn(parts), strategy)), blocks, attestations };
    },
    exportHistories: (publicKeys) => exportHistories(store, publicKeys),
    status: () =>
      alone(async () => {
        const keys = [...records.contents.keys.values()];
        const count = (of: (key: Key) => number) => keys.reduce((sum, key) => sum + of(key), 0);
        return {
          validators: count(({ blocks, attestations }) => Math.min(1, blocks.length + attestations.length)),
          blocks: count(({ blocks }) => blocks.length),
          attestations: count(({ attestations }) => attestations.length),
          genesisValidatorsRoot: records.genesisValidatorsRoot,
        };
      }),
    async close() {
      isClosed = true;
    },
  };
}

function memoryStore(records: MemoryRecords, alone: <Result>(work: () => Promise<Result>) => Promise<Result>) {
  const genesisValidatorsRoot = Buffer.from(records.genesisValidatorsRoot.slice(2), 'hex');
  const store: CompleteStore = {
    codes: historyCodes(rowIntegrity({ genesisValidatorsRoot })),
    turn: async () => undefined,
    snapshot: () =>
      alone(async () => {
        const { contents } = records;
        return { ...rowsOf(() => contents), close: async () => undefined };
      }),
    transaction: (work) => alone(() => work(writableRows(records, store))),
    addKeys: (publicKeys) =>
      alone(async () => {
        for (const publicKey of publicKeys) {
          const { keys } = records.contents;
          if (keys.has(keyHex(publicKey))) continue;
          put(records, { head: newHead(records, publicKey), blocks: [], attestations: [] });
        }
      }),
    changeRecord: (change) =>
      alone(async () => {
        records.contents = { ...records.contents, record: change(records.contents.record) };
        return records.contents.record;
      }),
  };
  return store;
}

function newHead({ contents }: MemoryRecords, publicKey: Uint8Array): Head {
  return { id: contents.keys.size + 1, publicKey: Uint8Array.from(publicKey), state: NEW_KEY };
}

function put(records: MemoryRecords, key: Key): void {
  const keys = new Map(records.contents.keys).set(keyHex(key.head.publicKey), key);
  records.contents = { ...records.contents, keys };
}

function rowsOf(contents: () => Contents): Rows {
  const keyOf = ({ publicKey }: Pick<Head, 'publicKey'>): Key | undefined => contents().keys.get(keyHex(publicKey));
  return {
    record: async () => contents().record,
    isKeyListWhole: async () => true,
    heads: async (publicKeys) =>
      publicKeys.map((publicKey) => keyOf({ publicKey })?.head).filter((head) => head !== undefined),
    async keysAfter(last, limit) {
      const all = [...contents().keys.values()].map(({ head }) => head.publicKey).sort(Buffer.compare);
      const keys = all.filter((publicKey) => Buffer.compare(publicKey, last) > 0).slice(0, limit);
      return { keys, last: keys.length < limit ? undefined : keys.at(-1) };
    },
    async history(head, sink) {
      const { blocks = [], attestations = [] } = keyOf(head) ?? {};
      for (const block of blocks) sink.block(block);
      for (const vote of attestations) sink.vote(vote);
    },
    blockAt: async (head, slot) => keyOf(head)?.blocks.find((block) => block.slot === slot),
  };
}

function writableRows(records: MemoryRecords, { codes }: Pick<CompleteStore, 'codes'>): WritableRows {
  const keyOf = (head: Head): Key =>
    records.contents.keys.get(keyHex(head.publicKey)) ?? { head, blocks: [], attestations: [] };
  return {
    ...rowsOf(() => records.contents),
    async oldest(head, below, limit) {
      const coded = <Entry extends BlockEntry | VoteEntry>(kind: EntryKind<Entry>, entries: readonly Entry[]) =>
        entries.map((entry): Coded<Entry> => ({ ...entry, ...codes.entry(kind, head.publicKey, entry) }));
      const key = keyOf(head);
      const old = key.blocks.filter(({ slot }) => slot < below.slot).slice(0, limit);
      const votes = key.attestations.filter(({ targetEpoch }) => targetEpoch < below.targetEpoch);
      const oldVotes = votes.slice(0, limit - old.length);
      const kept = { blocks: key.blocks.slice(old.length), attestations: key.attestations.slice(oldVotes.length) };
      return { blocks: coded(BLOCKS, old), attestations: coded(VOTES, oldVotes), lowestKept: lowestOf(kept) };
    },
    async change(head, { state, added = NONE, replaced = NONE, removed = NONE }) {
      const changed = <Entry extends BlockEntry | VoteEntry>(kind: EntryKind<Entry>): readonly Entry[] => {
        const own = (entries: CodedEntries) => entries[kind.name] as unknown as readonly Entry[];
        const placeOf = (entry: Entry): string => kind.placeOf(entry).join();
        const gone = new Set([...own(removed), ...own(replaced)].map(placeOf));
        const kept = (keyOf(head)[kind.name] as unknown as readonly Entry[]).filter((one) => !gone.has(placeOf(one)));
        return inOrder(kind, [...kept, ...own(replaced), ...own(added)]);
      };
      put(records, { head: { ...head, state }, blocks: changed(BLOCKS), attestations: changed(VOTES) });
    },
  };
}

const NONE: CodedEntries = { blocks: [], attestations: [] };

/** Entries alone: what an import adds has codes, and a message has more. */
function inOrder<Entry extends BlockEntry | VoteEntry>(
  { entryOf, placeOf }: EntryKind<Entry>,
  entries: readonly Entry[],
): Entry[] {
  const sorted = entries.toSorted((one, other) => {
    const [first = 0, second = 0] = placeOf(one).map((number, at) => number - (placeOf(other)[at] ?? 0));
    return first || second;
  });
  return sorted.map((entry) => entryOf(entry.signingRoot, ...placeOf(entry)));
}

function checked(
  records: MemoryRecords,
  { codes }: Pick<CompleteStore, 'codes'>,
  messages: readonly SlashableMessage[],
  floors: readonly Marks[],
): SlashingVerdict[] {
  const before = records.contents;
  const { floor } = before.record;
  const verdicts = messages.map((message, index): SlashingVerdict => {
    const publicKey = keyBytes(message.publicKey);
    const known = records.contents.keys.get(message.publicKey);
    const { head, blocks, attestations } = known ?? { head: newHead(records, publicKey), blocks: [], attestations: [] };
    if (isRolledBack(higherMarks(floor, head.state.highest), floors[index] as Marks)) return ROLLED_BACK;
    const decision = decideWithHistory(message, head.state, floor, { blocks, attestations });
    if (decision.kind === 'refused' || decision.repeat) return decision;
    const { state } = stateAfter(head.state, message, publicKey, codes);
    put(records, {
      head: { ...head, state },
      blocks: message.kind === 'block' ? inOrder(BLOCKS, [...blocks, message]) : blocks,
      attestations: message.kind === 'block' ? attestations : inOrder(VOTES, [...attestations, message]),
    });
    return decision;
  });
  if (!verdicts.includes(ROLLED_BACK)) return verdicts;
  records.contents = before; // nothing of such a batch is recorded
  return verdicts.map((verdict) => (verdict.kind === 'safe' ? UNDECIDED : verdict));
}

const ROLLED_BACK: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_rollback' };
const UNDECIDED: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_unavailable' };

function stagedIn(parts: readonly StagedText[]): StagedImport {
  const keys = [...new Set(parts.map(([publicKey]) => publicKey))].sort().map(keyBytes);
  return {
    keysAfter: async (last, limit) => keys.filter((key) => Buffer.compare(key, last) > 0).slice(0, limit),
    async *parts(publicKey) {
      for (const [key, text] of parts) if (key === keyHex(publicKey)) yield readPart(text);
    },
  };
}
