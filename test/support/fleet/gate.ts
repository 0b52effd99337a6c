// A store behind a gate: while its signer is frozen, calls wait before they reach the store and answers wait before
// they reach the signer; of one that was killed neither goes on. And what the store is when a protection is taken away,
// to see whether the model notices.

import { unsafeNoopBackend } from '../../../service/noop-store.ts';
import type { SlashingBackend, StoreFloor } from '../../../signer/slashing/types.ts';
import { MAIN_ROOT } from '../slashing.ts';

/** A protection that a world goes without. */
export type Missing =
  | 'minimal_merging'
  | 'retirement'
  | 'jump'
  | 'binding'
  | 'local_floor'
  /** After a failover of PostgreSQL, or a copy of its files that came back, the store is not raised. */
  | 'failover_jump'
  | 'restored_jump'
  /** A store never seems to be another copy than the one that its fleet signs over. */
  | 'incarnation'
  /** A file is opened as if it had been closed in order. */
  | 'closed_mark'
  /** A file that was closed long ago is opened as if it had been closed just now. */
  | 'end_time'
  /** Without a state table the incarnation of a store is what it was when it was made. */
  | 'renewal'
  /** Signers forget what they signed and read. */
  | 'memory';

export interface Gate {
  /** Resolves when the signer is not frozen; rejects when it was killed. */
  pass(): Promise<void>;
  close(): void;
  open(): void;
  kill(): void;
}

export class Killed extends Error {}

export function gate(): Gate {
  const state: { opening: PromiseWithResolvers<void> | undefined; isDead: boolean } = {
    opening: undefined,
    isDead: false,
  };
  const open = () => {
    state.opening?.resolve();
    state.opening = undefined;
  };
  return {
    async pass() {
      while (state.opening !== undefined) await state.opening.promise;
      if (state.isDead) throw new Killed('the signer was killed');
    },
    close() {
      state.opening ??= Promise.withResolvers();
    },
    open,
    kill() {
      state.isDead = true;
      open();
    },
  };
}

export function behindGate(store: SlashingBackend, { pass }: Gate): SlashingBackend {
  const gated =
    <Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await pass();
      const result = await call(...given);
      await pass();
      return result;
    };
  return {
    ...store,
    checkAndRecord: gated(store.checkAndRecord),
    identity: gated(store.identity),
    incarnate: gated(store.incarnate),
    jump: gated(store.jump),
    tenures: gated(store.tenures),
    endTenures: gated(store.endTenures),
    beginTenures: gated(store.beginTenures),
    importHistories: gated(store.importHistories),
    async *exportHistories(publicKeys) {
      await pass();
      yield* store.exportHistories(publicKeys);
      await pass();
    },
  };
}

export const NO_FLOOR: StoreFloor = { slot: 0, sourceEpoch: 0, targetEpoch: 0 };

/** A process that believes its own word: the tenures never reach the store, and no check compares them. */
function withForgottenTenures(store: SlashingBackend): SlashingBackend {
  const { tenures, endTenures, beginTenures } = unsafeNoopBackend(MAIN_ROOT);
  const checkAndRecord: SlashingBackend['checkAndRecord'] = (messages, floors) =>
    store.checkAndRecord(
      messages.map((message) => ({ ...message, tenure: 0 })),
      floors,
    );
  return { ...store, tenures, endTenures, beginTenures, checkAndRecord };
}

export function withoutProtection(store: SlashingBackend, missing: Missing | undefined): SlashingBackend {
  switch (missing) {
    case 'minimal_merging':
      return { ...store, importHistories: (histories) => store.importHistories(histories, { strategy: 'complete' }) };
    case 'retirement':
      return withForgottenTenures(store);
    case 'jump':
      return { ...store, jump: () => store.jump(NO_FLOOR) };
    default:
      return store;
  }
}
