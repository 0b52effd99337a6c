// A store behind a gate: while its signer is frozen, calls wait before they reach the store and answers wait before
// they reach the signer; of one that was killed neither goes on. And what the store is when a protection is taken away,
// to see whether the model notices.

import { forwardedStore } from '../../../enclave/slashing/forwarded-store.ts';
import type { SlashingBackend, StoreFloor } from '../../../enclave/slashing/types.ts';

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
  /** A file with a second name is opened. */
  | 'file_place'
  /** A store never seems older than its fleet noted. */
  | 'noted_revision'
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

export function behindGate(backend: SlashingBackend, { pass }: Gate): SlashingBackend {
  const gated =
    <Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await pass();
      const result = await call(...given);
      await pass();
      return result;
    };
  const store = forwardedStore(backend);
  return {
    ...store,
    checkAndRecord: gated(store.checkAndRecord),
    identity: gated(store.identity),
    advance: gated(store.advance),
    jump: gated(store.jump),
    highestMarks: gated(store.highestMarks),
    retire: gated(store.retire),
    reinstate: gated(store.reinstate),
    importHistories: gated(store.importHistories),
    async *exportHistories(publicKeys) {
      await pass();
      yield* store.exportHistories(publicKeys);
      await pass();
    },
  };
}

export const NO_FLOOR: StoreFloor = { slot: 0, sourceEpoch: 0, targetEpoch: 0 };

const NEWEST_REVISION = 2 ** 40;

export function withoutProtection(backend: SlashingBackend, missing: Missing | undefined): SlashingBackend {
  const store = forwardedStore(backend);
  switch (missing) {
    case 'minimal_merging':
      return { ...store, importHistories: (histories) => store.importHistories(histories, { strategy: 'complete' }) };
    case 'retirement':
      return { ...store, retire: async () => undefined, retiredKeys: async (publicKeys) => publicKeys ?? [] };
    case 'jump':
      return { ...store, jump: (_floor, options) => store.jump(NO_FLOOR, options) };
    case 'noted_revision':
      return { ...store, identity: async () => ({ ...(await store.identity()), revision: NEWEST_REVISION }) };
    default:
      return backend;
  }
}
