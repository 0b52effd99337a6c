// EIP-3076 read literally, over plain lists: the yardstick for the real backends. Slow and obvious on purpose.

import type { BlockProposal, SlashableMessage, Vote } from '../../signer/slashing/types.ts';
import { block, vote } from './slashing.ts';

/** Whether signing both would be slashable (or, for one message twice, not). */
export function areSlashable(one: SlashableMessage, other: SlashableMessage): boolean {
  if (one.publicKey !== other.publicKey || one.kind !== other.kind || isSame(one, other)) return false;
  if (one.kind === 'block') return one.slot === (other as BlockProposal).slot;
  const vote = other as Vote;
  return one.targetEpoch === vote.targetEpoch || surrounds(one, vote) || surrounds(vote, one);
}

/** A store that starts empty; each call judges one message and records it when it is safe. */
export function historyModel({ complete }: { complete: boolean }): (message: SlashableMessage) => string {
  const signed: SlashableMessage[] = [];
  return (message) => {
    const own = signed.filter((one) => one.kind === message.kind && one.publicKey === message.publicKey);
    const verdict = complete ? completeVerdict(own, message) : minimalVerdict(own, message);
    if (verdict === 'safe') signed.push(message);
    return verdict;
  };
}

function completeVerdict(own: readonly SlashableMessage[], message: SlashableMessage): string {
  if (message.kind === 'attestation' && message.sourceEpoch > message.targetEpoch) return 'refused';
  if (own.some((one) => isSame(one, message))) return 'repeat';
  if (own.some((one) => areSlashable(one, message))) return 'refused';
  if (own.length === 0) return 'safe';
  if (message.kind === 'block') return message.slot > Math.min(...slots(own)) ? 'safe' : 'refused';
  const sourceIsGood = message.sourceEpoch >= Math.min(...sources(own));
  return sourceIsGood && message.targetEpoch > Math.min(...targets(own)) ? 'safe' : 'refused';
}

function minimalVerdict(own: readonly SlashableMessage[], message: SlashableMessage): string {
  if (message.kind === 'attestation' && message.sourceEpoch > message.targetEpoch) return 'refused';
  const last = own.at(-1);
  if (last === undefined) return 'safe';
  if (isSame(last, message)) return 'repeat';
  if (message.kind === 'block') return message.slot > Math.max(...slots(own)) ? 'safe' : 'refused';
  const sourceIsGood = message.sourceEpoch >= Math.max(...sources(own));
  return sourceIsGood && message.targetEpoch > Math.max(...targets(own)) ? 'safe' : 'refused';
}

/** Messages of a few keys in a narrow range, so that conflicts abound; the same for the same seed. */
export function randomMessages(options: {
  count: number;
  keys: number;
  span: number;
  seed: number;
}): SlashableMessage[] {
  let state = options.seed;
  const below = (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  return Array.from({ length: options.count }, () => {
    const key = below(options.keys);
    const root = below(2);
    if (below(3) === 0) return block(key, below(options.span), root);
    const target = below(options.span);
    return vote(key, below(8) === 0 ? target + below(3) : below(target + 1), target, root);
  });
}

function surrounds(outer: Vote, inner: Vote): boolean {
  return outer.sourceEpoch < inner.sourceEpoch && inner.targetEpoch < outer.targetEpoch;
}

function isSame(one: SlashableMessage, other: SlashableMessage): boolean {
  if (!Buffer.from(one.signingRoot).equals(other.signingRoot)) return false;
  if (one.kind === 'block') return other.kind === 'block' && one.slot === other.slot;
  if (other.kind === 'block') return false;
  return one.sourceEpoch === other.sourceEpoch && one.targetEpoch === other.targetEpoch;
}

const slots = (own: readonly SlashableMessage[]) => own.map((one) => (one.kind === 'block' ? one.slot : Number.NaN));
const sources = (own: readonly SlashableMessage[]) =>
  own.map((one) => (one.kind === 'attestation' ? one.sourceEpoch : Number.NaN));
const targets = (own: readonly SlashableMessage[]) =>
  own.map((one) => (one.kind === 'attestation' ? one.targetEpoch : Number.NaN));
