// Restraints are stores around the bare store, put together here in one order. Everything but boot and the commands
// gets a RestrainedStore, which only this file makes. Restraints only refuse more.

import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { Doubts } from './doubt/doubts.ts';
import { isAhead, noneAhead } from './future.ts';
import { higherMarks, highestOf, NEW_KEY, NO_HISTORY, NO_MARKS } from './history/head.ts';
import { decideWithHistory, isRolledBack } from './history/rules.ts';
import { type FutureFloor, isoTime } from './jump.ts';
import { historyOfFloor } from './operations/export.ts';
import {
  type Doubt,
  type Marks,
  type PublicKeyHex,
  type SlashableMessage,
  type SlashingBackend,
  type SlashingVerdict,
  type StoreFloor,
  StoreInDoubt,
  type ValidatorHistory,
} from './types.ts';

declare const RESTRAINED: unique symbol;

/** What only the owner of a store may do: bind it, raise its floor, and begin a key's records again. */
export type BareStore = Pick<SlashingBackend, 'name' | 'identity' | 'incarnate' | 'jump' | 'startAfresh'>;

export type RestrainedStore = Omit<SlashingBackend, Exclude<keyof BareStore, 'name'> | 'doubt' | 'witness'> & {
  readonly hindrance: Hindrance;
  readonly [RESTRAINED]: true;
};

interface Restraints {
  readonly hindrance?: Hindrance | undefined;
  /** Nothing beyond it is signed or imported. Undefined: no genesis time is known, and nothing can be ahead. */
  readonly latest?: (() => StoreFloor) | undefined;
  /** What the store says and answers in doubt goes there; undefined: to the caller. */
  readonly doubts?: Pick<Doubts, 'settle' | 'hindrance' | 'floorOfStart'> | undefined;
  /** A floor that lies ahead of the clock (doubt/floor.ts). */
  readonly future?: (() => FutureFloor | undefined) | undefined;
  /** In place of the store's own `close`, for a signer that leaves a fleet first. */
  readonly close?: SlashingBackend['close'];
}

/**
 * In this order, from the store outwards: its doubts, the floor of this start, the clock, and the right to use the
 * store at all, which a signer in doubt does not have.
 */
export function restrainStore(bare: SlashingBackend, restraints: Restraints): RestrainedStore {
  const { doubts, future, latest, close = bare.close } = restraints;
  let store = bare;
  if (doubts !== undefined) store = localFloor(inDoubt(store, doubts.settle), () => doubts.floorOfStart);
  if (future !== undefined) store = belowFuture(store, future);
  if (latest !== undefined) store = aheadOfClock(store, latest);
  const hindrance = () => doubts?.hindrance() ?? restraints.hindrance?.();
  return branded({ ...asked(store, hindrance), close }, hindrance);
}

/** Without a master key no row could be verified: the real store is never opened. */
export function sealedStore(name: SlashingBackend['name']): RestrainedStore {
  const limits = { maxMessages: 1, maxInFlight: 1, minIntervalMs: 0 };
  const sealed = () => Promise.reject(new SignerError('sealed'));
  const refusals = Object.fromEntries(Object.keys(RIGHT_TO_USE).map((method) => [method, sealed]));
  const exportHistories = () => {
    throw new SignerError('sealed');
  };
  const methods = { ...refusals, exportHistories, close: async () => {} } as unknown as Pick<SlashingBackend, Method>;
  return branded({ name, batchLimits: limits, ...methods }, () => 'sealed');
}

type Method = Exclude<keyof SlashingBackend, 'name' | 'batchLimits' | 'doubt' | 'witness'>;

/** A new method does not compile before it stands here. `asks`: before the call, after it, and at each history. */
const RIGHT_TO_USE: { readonly [M in Method]: 'forwards' | 'asks' } = {
  checkAndRecord: 'forwards', // slashing/protection.ts asks when it hands over a batch (sign/right.ts)
  checkHealth: 'forwards', // health is of the store, not of the right to it
  identity: 'forwards',
  incarnate: 'forwards',
  jump: 'forwards',
  tenures: 'forwards', // a copy carries it, and every check of the copy compares it
  endTenures: 'asks',
  beginTenures: 'asks',
  signedBlockRoot: 'asks',
  importHistories: 'asks',
  exportHistories: 'asks',
  pruneStep: 'asks',
  status: 'asks',
  marksBeyond: 'forwards', // it names keys, and tells nothing of what may be signed
  startAfresh: 'forwards',
  close: 'forwards',
};

function branded(store: SlashingBackend, hindrance: Hindrance): RestrainedStore {
  const { identity: _1, incarnate: _2, jump: _3, startAfresh: _4, ...restrained } = store;
  return { ...restrained, hindrance } as unknown as RestrainedStore;
}

/** Undefined when all may be signed over this store now. */
export type Hindrance = () => ErrorReason | undefined;

function asked(store: SlashingBackend, hindrance: Hindrance): SlashingBackend {
  const ask = (): void => {
    const reason = hindrance();
    if (reason !== undefined) throw new SignerError(reason);
  };
  const asking =
    <Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      ask();
      const result = await call(...given);
      ask(); // what was read of a store that was lost meanwhile is no promise
      return result;
    };
  const asks: Partial<SlashingBackend> = {
    importHistories: asking((histories, options) => store.importHistories(askingAtEach(histories, ask), options)),
    exportHistories: (publicKeys) => {
      ask(); // at the call: a route has not begun its answer
      return askingAtEach(store.exportHistories(publicKeys), ask);
    },
  };
  const methods = (Object.keys(RIGHT_TO_USE) as Method[]).map((method) => {
    const forward = store[method] as (...given: unknown[]) => Promise<unknown>;
    return [method, RIGHT_TO_USE[method] === 'forwards' ? forward : (asks[method] ?? asking(forward))];
  });
  return { name: store.name, batchLimits: store.batchLimits, ...Object.fromEntries(methods) };
}

async function* askingAtEach(
  histories: AsyncIterable<ValidatorHistory>,
  ask: () => void,
): AsyncGenerator<ValidatorHistory> {
  for await (const history of histories) {
    ask();
    yield history;
  }
  ask();
}

/** What tells or shows marks: each restraint says what it does there, and hands on what it does not name. */
type Restraint = Pick<SlashingBackend, 'checkAndRecord' | 'identity' | 'exportHistories'> & Partial<SlashingBackend>;

function restrained(store: SlashingBackend, restraint: Restraint): SlashingBackend {
  return { ...store, ...restraint };
}

// A store in doubt is asked again when the doubt is settled. Of a batch with a key whose records are lost nothing was
// recorded: the other keys are judged over the raised store.

export function inDoubt(store: SlashingBackend, settle: (doubt: Doubt) => Promise<void>): SlashingBackend {
  /** Of each key the marks that a jump was made for: it helps a key that lies beyond the present no second time. */
  const jumpedFor = new Map<PublicKeyHex, Marks>();
  const whenSettled = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreInDoubt)) throw error;
      await settle(error.doubt);
      return await work();
    }
  };
  const check: SlashingBackend['checkAndRecord'] = (...given) => whenSettled(() => store.checkAndRecord(...given));
  return restrained(store, {
    identity: store.identity,
    checkHealth: (signal) => whenSettled(() => store.checkHealth(signal)),
    async checkAndRecord(messages, floors) {
      const verdicts = await check(messages, floors);
      const lost = verdicts.map(isLost);
      if (!lost.includes(true)) return verdicts;
      const news = messages.flatMap(({ publicKey }, index) => {
        const [before = NO_MARKS, now = NO_MARKS] = [jumpedFor.get(publicKey), floors[index]];
        if (lost[index] !== true || (jumpedFor.has(publicKey) && !isRolledBack(before, now))) return [];
        jumpedFor.set(publicKey, now);
        return [publicKey];
      });
      if (news.length > 0) await settle({ cause: 'lost_records', facts: { public_keys: news } });
      const decidedAlready = (_: unknown, index: number) => (lost[index] === true ? verdicts[index] : undefined);
      return judgedFirst({ checkAndRecord: check }, () => decidedAlready)(messages, floors);
    },
    async *exportHistories(publicKeys) {
      try {
        return yield* store.exportHistories(publicKeys);
      } catch (error) {
        if (!(error instanceof StoreInDoubt)) throw error; // it is thrown before the first history
        await settle(error.doubt);
      }
      yield* store.exportHistories(publicKeys);
    },
  });
}

const isLost = (verdict: SlashingVerdict): boolean =>
  verdict.kind === 'unavailable' && verdict.reason === 'slashing_rollback';

// Two restraints by time. The floor of this start, for enclaves: a person who holds the tables may have restored older
// ones, so this process refuses everything that an earlier one may have signed. And the clock: every jump is a floor
// made by a later clock, with the largest tolerance that a signer of the store may have, so what was signed before lies
// at or below it, as long as the jump's clock is not further behind the signer's than the time between the two.

export function localFloor(store: SlashingBackend, floorOf: () => StoreFloor | null): SlashingBackend {
  return restrained(store, {
    checkAndRecord: judgedFirst(store, () => {
      const floor = floorOf();
      return floor === null ? () => undefined : (message) => belowFloor(message, floor);
    }),
    async identity() {
      const [identity, floor] = [await store.identity(), floorOf()];
      return floor === null ? identity : { ...identity, floor: higherMarks(identity.floor, floor) };
    },
    exportHistories(publicKeys) {
      const floor = floorOf();
      return floor === null ? store.exportHistories(publicKeys) : raised(store, floor, publicKeys);
    },
  });
}

/** What a floor of the future refuses is no fault of the message, and ends. */
function belowFuture(store: SlashingBackend, future: () => FutureFloor | undefined): SlashingBackend {
  const explained = (
    verdict: SlashingVerdict,
    message: SlashableMessage | undefined,
    { floor, endsAt }: FutureFloor,
  ): SlashingVerdict => {
    const isOfMarks = verdict.kind === 'refused' && verdict.reason.endsWith('_low_water_mark');
    if (!isOfMarks || message === undefined || belowFloor(message, floor) === undefined) return verdict;
    const hint = `nothing up to slot ${floor.slot} and epoch ${floor.targetEpoch} is signed, until ${isoTime(endsAt)}`;
    return { kind: 'unavailable', reason: 'below_floor', hint };
  };
  return restrained(store, {
    identity: store.identity,
    exportHistories: store.exportHistories,
    async checkAndRecord(messages, floors) {
      const verdicts = await store.checkAndRecord(messages, floors);
      const ahead = verdicts.some(({ kind }) => kind === 'refused') ? future() : undefined;
      return ahead === undefined ? verdicts : verdicts.map((verdict, at) => explained(verdict, messages[at], ahead));
    },
  });
}

export function aheadOfClock(store: SlashingBackend, latest: () => StoreFloor): SlashingBackend {
  const judge = () => {
    const now = latest();
    return (message: SlashableMessage) => (isAhead(message, now) ? AHEAD : undefined);
  };
  return restrained(store, {
    checkAndRecord: judgedFirst(store, judge),
    identity: store.identity,
    exportHistories: store.exportHistories,
    importHistories: (histories, options) =>
      store.importHistories(options?.acceptsFuture === true ? histories : noneAhead(histories, latest), options),
  });
}

const AHEAD: SlashingVerdict = { kind: 'unavailable', reason: 'ahead_of_clock' };

type Judge = (message: SlashableMessage, index: number) => SlashingVerdict | undefined;

function judgedFirst(
  store: Pick<SlashingBackend, 'checkAndRecord'>,
  judge: () => Judge,
): SlashingBackend['checkAndRecord'] {
  return async (messages, floors) => {
    const verdicts: (SlashingVerdict | undefined)[] = messages.map(judge());
    if (verdicts.every((verdict) => verdict === undefined)) return store.checkAndRecord(messages, floors);
    const isAsked = (_: unknown, index: number) => verdicts[index] === undefined;
    const asked = messages.filter(isAsked);
    const answers = asked.length === 0 ? [] : await store.checkAndRecord(asked, floors.filter(isAsked));
    if (answers.length !== asked.length) throw new Error('the store gives one verdict for each message');
    const next = answers.values();
    return verdicts.map((verdict) => verdict ?? next.next().value ?? UNDECIDED);
  };
}

const UNDECIDED: SlashingVerdict = { kind: 'unavailable', reason: 'slashing_unavailable' };

function belowFloor(message: SlashableMessage, floor: StoreFloor): SlashingVerdict | undefined {
  const decision = decideWithHistory({ ...message, tenure: NEW_KEY.tenure }, NEW_KEY, floor, NO_HISTORY);
  return decision.kind === 'refused' ? decision : undefined;
}

/** Raises each history to the floor: a signer that imports the file must refuse what this process refuses. */
async function* raised(
  backend: SlashingBackend,
  floor: StoreFloor,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const missing = new Set(publicKeys ?? []);
  for await (const history of backend.exportHistories(publicKeys)) {
    missing.delete(history.publicKey);
    yield raisedHistory(history, floor);
  }
  for (const publicKey of [...missing].sort()) yield { publicKey, ...historyOfFloor(floor) };
}

function raisedHistory(history: ValidatorHistory, floor: StoreFloor): ValidatorHistory {
  const own = historyOfFloor(floor);
  const blocks = history.blocks.filter(({ slot }) => slot > floor.slot);
  const { attestations } = history;
  const { sourceEpoch, targetEpoch } = higherMarks(highestOf(history), floor);
  const isAbove = attestations.every(
    (vote) => vote.targetEpoch > floor.targetEpoch && vote.sourceEpoch >= floor.sourceEpoch,
  );
  return {
    publicKey: history.publicKey,
    blocks: blocks.length > 0 ? blocks : own.blocks,
    attestations: attestations.length > 0 && isAbove ? attestations : [{ sourceEpoch, targetEpoch, signingRoot: null }],
  };
}
