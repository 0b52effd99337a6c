// The identity of a store: its id, and its incarnations, random numbers that signers renew while they use it. A number
// tells this store from every copy that was made before. The record keeps the latest ones, because a signer may read
// the store before, and the state table after, another signer renewed it.

import { randomBytes } from 'node:crypto';
import type { DoubtCause, SlashingBackend, StoreIdentity } from './types.ts';

export interface Incarnations {
  /** 32 lower-case hex digits each, the latest first; none in a store that no signer has used. */
  readonly held: readonly string[];
  /** When the last signer ended in order, by the state table's clock; null while the store is in use. */
  readonly closedAt: number | null;
  readonly isRaised: boolean;
  /** Of the last end in order of a file (sqlite/file/file.ts), and when it was; null while it is in use. */
  readonly end: { readonly number: string; readonly at: number } | null;
  /** Databases of Web3Signer that were merged here, or waived by a jump: `HOST:PORT/NAME`, the latest first. */
  readonly web3signers: readonly string[];
  /** What a signer found, and could not settle by a jump so far: the next start knows it, too. */
  readonly doubt?: DoubtCause | undefined;
}

/** More than signers write between two looks of one of them. */
const MAX_HELD = 32;
const INCARNATION_BYTES = 16;
const MAX_ATTEMPTS = 10;
export const NO_INCARNATION = '';

/** @param text passed its code: this program wrote it */
export function readIncarnations(text: string): Incarnations {
  return text === NO_INCARNATION ? NOT_USED : JSON.parse(text);
}

export function nextIncarnation(text: string, closedAt: number | null): string {
  const { held: before, web3signers, doubt } = readIncarnations(text);
  const held = [newNumber(), ...before].slice(0, MAX_HELD);
  return incarnationText({ ...NOT_USED, held, closedAt, web3signers, doubt });
}

const NOT_USED: Incarnations = { held: [], closedAt: null, isRaised: false, end: null, web3signers: [] };
export const incarnationText = (incarnations: Incarnations): string => JSON.stringify(incarnations);

/**
 * Changes what the record has besides the floor. Other signers change it at the same time.
 * @throws Error when they renew it again and again
 */
export async function changeIncarnations(
  store: Pick<SlashingBackend, 'identity' | 'incarnate'>,
  change: (before: Incarnations) => Incarnations,
): Promise<void> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const { incarnation } = await store.identity();
    const next = incarnationText(change(readIncarnations(incarnation)));
    if (next === incarnation || (await store.incarnate(incarnation, next))) return;
  }
  throw new Error('the slashing store was changed by other signers all the time: do the same again');
}

export function newNumber(): string {
  return randomBytes(INCARNATION_BYTES).toString('hex');
}

/** @param record of a store, which has more */
export function identityOf({ id, incarnation, floor }: StoreIdentity): StoreIdentity {
  return { id, incarnation, floor };
}

/** StoreIdentity has it as 32 hex digits. */
export const STORE_ID_BYTES = 16;

export const NEW_STORE = 'a new slashing database: it knows nothing of what the keys signed before';
