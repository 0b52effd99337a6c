// The row SLASHING_STORE of the state table: the one slashing store over which a fleet signs, its incarnation, and the
// signers that may sign over it, under one HMAC of the master key. An older row that was put back lets nothing join: a
// signer that is alive, or the record of an end in order, must vouch for it too. But a row that is put back again and
// again, so that no heartbeat shows, ends in a take-over while a signer lives (security.md).

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Item } from '../aws/dynamodb.ts';
import { wholeNumber } from './state-rows.ts';

export const SLASHING_STORE = 'SLASHING_STORE';
/**
 * The latest end in order from which a signer went on. It needs no code: a lower number does no more than an older row.
 */
export const SLASHING_STORE_END = 'SLASHING_STORE_END';

export interface BoundStore {
  /** 32 lower-case hex digits (StoreIdentity). */
  readonly storeId: string;
  /** Counts from 1 the times that the fleet was bound after a wait. */
  readonly binding: number;
  /** One that the store holds: 32 lower-case hex digits. */
  readonly incarnation: string;
  /** Those that joined and did not end in order, by names of their own. None: the last one ended in order. */
  readonly signers: readonly string[];
}

export interface BindingRow extends BoundStore {
  readonly isAuthentic: boolean;
  readonly mac: Uint8Array | undefined;
  /** Changes whenever a signer that uses the store is alive. */
  readonly heartbeat: number;
  readonly replica: string;
  readonly beatAt: string;
}

export type BindingCodes = ReturnType<typeof bindingCodes>;

/** @param key 32 bytes, taken over: `wipe` ends it */
export function bindingCodes(key: Buffer) {
  return {
    binding({ storeId, binding, incarnation, signers }: BoundStore): Buffer {
      const fields = ['slashing store binding v1', storeId, binding, incarnation, signers];
      return createHmac('sha256', key).update(JSON.stringify(fields)).digest();
    },
    wipe: (): void => void key.fill(0),
  };
}

export function encodeBound(store: BoundStore, codes: BindingCodes): Item {
  return {
    store_id: { S: store.storeId },
    binding: { N: String(store.binding) },
    incarnation: { S: store.incarnation },
    signers: { L: store.signers.map((name) => ({ S: name })) },
    mac: { B: codes.binding(store) },
  };
}

export function decodeBinding(item: Item | undefined, codes: BindingCodes): BindingRow | undefined {
  if (item === undefined) return undefined;
  const store = {
    storeId: item['store_id']?.S ?? '',
    binding: wholeNumber(item, SLASHING_STORE, 'binding'),
    incarnation: item['incarnation']?.S ?? '',
    signers: (item['signers']?.L ?? []).map(({ S: name = '' }) => name),
  };
  const mac = item['mac']?.B;
  const code = codes.binding(store);
  return {
    ...store,
    isAuthentic: mac?.length === code.length && timingSafeEqual(mac, code),
    mac,
    heartbeat: Number(item['heartbeat']?.N ?? 0),
    replica: item['replica']?.S ?? 'unknown',
    beatAt: item['beat_at']?.S ?? 'unknown',
  };
}
