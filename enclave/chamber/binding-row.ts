// The row SLASHING_STORE of the state table: the one slashing store over which a fleet signs. HMACs of the master key
// protect the name of the store and its revision. The heartbeat beside them is a plain counter: whoever can write it
// can only stop a signer from signing. A row with a wrong HMAC counts as a row of another store. Nobody signs over it,
// and a signer takes it over like one.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Item } from '../aws/dynamodb.ts';
import { MalformedRow, wholeNumber } from './state-rows.ts';

export const SLASHING_STORE = 'SLASHING_STORE';

export interface BoundStore {
  /** 32 lower-case hex digits (StoreIdentity). */
  readonly storeId: string;
  /**
   * Tells copies of a store that only one signer may use (sqlite) from each other; empty for a store of many signers.
   */
  readonly seat: string;
  /** Counts the bindings of this fleet from 1: a store that is bound again is bound anew. */
  readonly binding: number;
}

/** What a reader goes by. A row whose HMAC fails is not authentic. */
export interface BindingRow extends BoundStore {
  readonly isAuthentic: boolean;
  /** The highest revision that a signer has noted of the store; 0 when that is not authentic. */
  readonly revision: number;
  /** Changes whenever a signer that uses the store is alive. */
  readonly heartbeat: number;
  /** Who beat last, and when by its own clock: for people. */
  readonly replica: string;
  readonly beatAt: string;
}

export interface BindingCodes {
  binding(store: BoundStore): Buffer;
  revision(store: BoundStore, revision: number): Buffer;
  wipe(): void;
}

/** @param key 32 bytes, taken over: `wipe` ends it */
export function bindingCodes(key: Buffer): BindingCodes {
  const code = (...parts: readonly (string | number)[]): Buffer =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest();
  return {
    binding: ({ storeId, seat, binding }) => code('slashing store binding v1', storeId, seat, binding),
    revision: ({ storeId, seat, binding }, revision) =>
      code('slashing store revision v1', storeId, seat, binding, revision),
    wipe: () => void key.fill(0),
  };
}

export function decodeBinding(item: Item | undefined, codes: BindingCodes): BindingRow | undefined {
  if (item === undefined) return undefined;
  const store = {
    storeId: item['store_id']?.S ?? '',
    seat: item['seat']?.S ?? '',
    binding: wholeNumber(item, SLASHING_STORE, 'binding'),
  };
  const revision = Number(item['revision']?.N ?? 0);
  if (!Number.isSafeInteger(revision) || revision < 0)
    throw new MalformedRow(SLASHING_STORE, 'has no whole `revision`');
  const isAuthentic = isSame(item['mac']?.B, codes.binding(store));
  const isRevisionAuthentic = isAuthentic && isSame(item['revision_mac']?.B, codes.revision(store, revision));
  return {
    ...store,
    isAuthentic,
    revision: isRevisionAuthentic ? revision : 0,
    heartbeat: Number(item['heartbeat']?.N ?? 0),
    replica: item['replica']?.S ?? 'unknown',
    beatAt: item['beat_at']?.S ?? 'unknown',
  };
}

function isSame(stored: Uint8Array | undefined, code: Buffer): boolean {
  return stored !== undefined && stored.length === code.length && timingSafeEqual(stored, code);
}
