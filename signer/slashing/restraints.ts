// Restraints are stores around the bare store, put together here in one order. Everything but boot and the commands
// gets a RestrainedStore, which only this file makes. Restraints only refuse more.

import { type ErrorReason, SignerError } from '../api/errors.ts';
import { decideWithHistory, NEW_KEY } from './history/rules.ts';
import { higherFloor } from './jump.ts';
import { historyOfFloor } from './operations/export.ts';
import type {
  PublicKeyHex,
  SlashableMessage,
  SlashingBackend,
  StoreFloor,
  ValidatorHistory,
  Verdict,
} from './types.ts';

declare const RESTRAINED: unique symbol;

export type StoreKeeper = Pick<SlashingBackend, 'name' | 'identity' | 'incarnate' | 'jump' | 'highestMarks'>;

export type RestrainedStore = Omit<SlashingBackend, Exclude<keyof StoreKeeper, 'name'> | 'isInDoubt'> & {
  readonly hindrance: Hindrance;
  readonly [RESTRAINED]: true;
};

export interface Restraints {
  readonly hindrance?: Hindrance | undefined;
  /** Nothing beyond it is signed. Undefined: messages may be ahead of the clock. */
  readonly latest?: (() => StoreFloor) | undefined;
  /** Everything at or below it was possibly signed by an earlier process. */
  readonly floor?: StoreFloor | null | undefined;
  /** In place of the store's own `close`, for a signer that leaves a fleet first. */
  readonly close?: SlashingBackend['close'];
}

/** In this order, from the store outwards: the floor of this start, the clock, the right to use the store at all. */
export function restrainStore(bare: SlashingBackend, restraints: Restraints): RestrainedStore {
  const { floor, latest, hindrance = () => undefined, close } = restraints;
  const floored = floor == null ? bare : decided(bare, localFloor(bare, floor));
  const timed = latest === undefined ? floored : decided(floored, aheadOfClock(floored, latest));
  return branded(decided(timed, { ...RIGHT_TO_USE, close: close ?? 'forwards' }, hindrance), hindrance);
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

const RIGHT_TO_USE: Decisions = {
  checkAndRecord: 'asks',
  checkHealth: 'forwards', // health is of the store, not of the right to it
  identity: 'forwards',
  incarnate: 'forwards',
  jump: 'forwards',
  highestMarks: 'forwards',
  tenures: 'forwards', // a copy carries it, and every check of the copy compares it
  endTenures: 'asks',
  beginTenures: 'asks',
  signedBlockRoot: 'asks',
  importHistories: 'asks',
  exportHistories: 'asks',
  pruneStep: 'asks',
  status: 'asks',
  close: 'forwards',
};

function branded(store: SlashingBackend, hindrance: Hindrance): RestrainedStore {
  const { identity: _1, incarnate: _2, jump: _3, highestMarks: _4, ...restrained } = store;
  return { ...restrained, hindrance } as unknown as RestrainedStore;
}

// A new method does not compile before it stands in both tables: here, for restraints that say nothing of it, and in
// RIGHT_TO_USE. What tells or shows marks stands in RIGHT_TO_USE alone: each restraint says itself what it does there.

type Marking = 'checkAndRecord' | 'identity' | 'exportHistories';
export type Method = Exclude<keyof SlashingBackend, 'name' | 'batchLimits' | 'isInDoubt'>;
/** `asks`: before the call, after it, and at each history that goes through it. */
export type Decisions = { readonly [M in Method]: 'forwards' | 'asks' | SlashingBackend[M] };

export const FORWARDS: { readonly [M in Exclude<Method, Marking>]: 'forwards' } = {
  checkHealth: 'forwards',
  incarnate: 'forwards',
  jump: 'forwards',
  highestMarks: 'forwards',
  tenures: 'forwards',
  endTenures: 'forwards',
  beginTenures: 'forwards',
  signedBlockRoot: 'forwards',
  importHistories: 'forwards',
  pruneStep: 'forwards',
  status: 'forwards',
  close: 'forwards',
};

/** Undefined when all may be signed over this store now. */
export type Hindrance = () => ErrorReason | undefined;

export function decided(
  store: SlashingBackend,
  decisions: Decisions,
  hindrance: Hindrance = () => undefined,
): SlashingBackend {
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
  const methods = (Object.keys(decisions) as Method[]).map((method) => {
    const decision = decisions[method];
    if (decision !== 'forwards' && decision !== 'asks') return [method, decision];
    const forward = (store[method] as (...given: unknown[]) => Promise<unknown>).bind(store);
    return [method, decision === 'forwards' ? forward : (asks[method] ?? asking(forward))];
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

// Two restraints by time. The floor of this start, for enclaves: a person who holds the tables may have restored older
// ones, so this process refuses everything that an earlier one may have signed. And the clock, for enclaves and fleets:
// every jump is a floor made by a later clock with the same tolerance, so what was signed before lies at or below it,
// as long as the jump's clock is not further behind the signer's than the time between the two.

export function localFloor(store: SlashingBackend, floor: StoreFloor): Decisions {
  return {
    ...FORWARDS,
    checkAndRecord: judgedFirst(store, () => (message) => belowFloor(message, floor)),
    async identity() {
      const identity = await store.identity();
      return { ...identity, floor: higherFloor(identity.floor, floor) };
    },
    exportHistories: (publicKeys) => raised(store, floor, publicKeys),
  };
}

export function aheadOfClock(store: SlashingBackend, latest: () => StoreFloor): Decisions {
  const judge = () => {
    const now = latest();
    return (message: SlashableMessage) => (isAhead(message, now) ? AHEAD : undefined);
  };
  return {
    ...FORWARDS,
    checkAndRecord: judgedFirst(store, judge),
    identity: 'forwards',
    exportHistories: 'forwards',
  };
}

const AHEAD: Verdict = { kind: 'unavailable', reason: 'ahead_of_clock' };

type Judge = (message: SlashableMessage) => Verdict | undefined;

function judgedFirst(store: SlashingBackend, judge: () => Judge): SlashingBackend['checkAndRecord'] {
  return async (messages, floors) => {
    const verdicts: (Verdict | undefined)[] = messages.map(judge());
    if (verdicts.every((verdict) => verdict === undefined)) return store.checkAndRecord(messages, floors);
    const isAsked = (_: unknown, index: number) => verdicts[index] === undefined;
    const asked = messages.filter(isAsked);
    const answers = asked.length === 0 ? [] : await store.checkAndRecord(asked, floors.filter(isAsked));
    if (answers.length !== asked.length) throw new Error('the store gives one verdict for each message');
    const next = answers.values();
    return verdicts.map((verdict) => verdict ?? next.next().value ?? UNDECIDED);
  };
}

const UNDECIDED: Verdict = { kind: 'unavailable', reason: 'slashing_unavailable' };

function belowFloor(message: SlashableMessage, floor: StoreFloor): Verdict | undefined {
  const decision = decideWithHistory({ ...message, tenure: NEW_KEY.tenure }, NEW_KEY, floor, NO_HISTORY);
  return decision.kind === 'refused' ? decision : undefined;
}

const NO_HISTORY = { blocks: [], attestations: [] };

/** A source of the present epoch is ahead too: were the vote lost, a jump would let one from before surround it. */
function isAhead(message: SlashableMessage, latest: StoreFloor): boolean {
  if (message.kind === 'block') return message.slot > latest.slot;
  const { sourceEpoch, targetEpoch } = message;
  return targetEpoch > latest.targetEpoch || (sourceEpoch > latest.sourceEpoch && sourceEpoch <= targetEpoch);
}

/** Raised to the floor: whoever reads the file must refuse what this process does. */
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
  const sourceEpoch = attestations.reduce((most, vote) => Math.max(most, vote.sourceEpoch), floor.sourceEpoch);
  const targetEpoch = attestations.reduce((most, vote) => Math.max(most, vote.targetEpoch), floor.targetEpoch);
  const isAbove = attestations.every(
    (vote) => vote.targetEpoch > floor.targetEpoch && vote.sourceEpoch >= floor.sourceEpoch,
  );
  return {
    publicKey: history.publicKey,
    blocks: blocks.length > 0 ? blocks : own.blocks,
    attestations: attestations.length > 0 && isAbove ? attestations : [{ sourceEpoch, targetEpoch, signingRoot: null }],
  };
}
