// Judges one message by what a complete store knows of its key. Pure: the store reads rows and asks here.
//
// The usual message is beyond everything that its key has signed. The head alone then decides. For any other message,
// the head or one row can refuse it. To call it safe, the store has to read the whole history and prove it complete,
// because a missing row proves nothing by itself.

import type { BlockProposal, SlashableMessage, StoreFloor, Vote } from '../types.ts';
import { type EntryCodes, type HistoryCodes, withEntry } from './codes.ts';
import { type Decision, decideAttestation, decideBlock, isBeyondHistory, raiseMarks, refused } from './rules.ts';
import { type BlockEntry, effectiveLowWater, type KeyHistory, type KeyState, type VoteEntry } from './state.ts';

/** `history`: nothing that was read refuses the message; read the whole history and ask `decideWithHistory`. */
export type Judgement = Decision | { readonly kind: 'history' };

/** `atSlot`: the entry at the message's slot, if there is one; it need not be read when the message lies beyond all. */
export function judgeBlock(
  message: BlockProposal,
  state: KeyState,
  floor: StoreFloor | null,
  atSlot: BlockEntry | undefined,
): Judgement {
  if (state.isRetired) return refused('key_retired');
  const isBeyond = isBeyondHistory(message, state.highest);
  const entry = isBeyond ? null : (atSlot ?? null);
  const decision = decideBlock(message, { entry, lowWaterSlot: effectiveLowWater(state, floor).slot });
  return decision.kind === 'safe' && entry === null && !isBeyond ? { kind: 'history' } : decision;
}

/**
 * `atTarget`: all entries for the message's target; they need not be read when the message lies beyond all. `against`:
 * one entry that the message surrounds, if there is one, and one that surrounds it, for a store that finds them
 * cheaply: a refusal then rests on one row or on the head, and the history need not be read for it.
 */
export function judgeVote(
  message: Vote,
  state: KeyState,
  floor: StoreFloor | null,
  atTarget: readonly VoteEntry[],
  against?: readonly VoteEntry[],
): Judgement {
  if (state.isRetired) return refused('key_retired');
  if (isBeyondHistory(message, state.highest)) return decideVote(message, state, floor, NO_VOTES);
  // A source after its target is refused without a look, and an entry at the target decides by itself.
  const isDecided = atTarget.length > 0 || message.sourceEpoch > message.targetEpoch;
  if (isDecided) return decideVote(message, state, floor, { attestations: atTarget });
  if (against === undefined) return { kind: 'history' };
  const decision = decideVote(message, state, floor, { attestations: against });
  return decision.kind === 'refused' ? decision : { kind: 'history' };
}

/** The decision about a message that does not lie beyond its key's history, which was shown to be whole. */
export function decideWithHistory(
  message: SlashableMessage,
  state: KeyState,
  floor: StoreFloor | null,
  history: KeyHistory,
): Decision {
  if (state.isRetired) return refused('key_retired');
  if (message.kind === 'attestation') return decideVote(message, state, floor, history);
  const entry = history.blocks.find(({ slot }) => slot === message.slot) ?? null;
  return decideBlock(message, { entry, lowWaterSlot: effectiveLowWater(state, floor).slot });
}

/** The state once a safe message is recorded, and the codes of its entry. A first message sets its low-water mark. */
export function stateAfter(
  state: KeyState,
  message: SlashableMessage,
  publicKey: Uint8Array,
  codes: HistoryCodes,
): { readonly state: KeyState; readonly codes: EntryCodes } {
  const highest = raiseMarks(state.highest, message);
  const { lowWater } = state;
  if (message.kind === 'block') {
    const entryCodes = codes.block(publicKey, message);
    const blocks = withEntry(state.blocks, entryCodes);
    const slot = lowWater.slot ?? message.slot;
    return { state: { ...state, highest, blocks, lowWater: { ...lowWater, slot } }, codes: entryCodes };
  }
  const entryCodes = codes.attestation(publicKey, message);
  const attestations = withEntry(state.attestations, entryCodes);
  const marks = {
    slot: lowWater.slot,
    sourceEpoch: lowWater.sourceEpoch ?? message.sourceEpoch,
    targetEpoch: lowWater.targetEpoch ?? message.targetEpoch,
  };
  return { state: { ...state, highest, attestations, lowWater: marks }, codes: entryCodes };
}

const NO_VOTES = { attestations: [] };

function decideVote(
  message: Vote,
  state: KeyState,
  floor: StoreFloor | null,
  { attestations }: Pick<KeyHistory, 'attestations'>,
): Decision {
  const { sourceEpoch, targetEpoch } = message;
  const [entry = null, another] = attestations.filter((past) => past.targetEpoch === targetEpoch);
  const marks = effectiveLowWater(state, floor);
  return decideAttestation(message, {
    entry: another === undefined || entry === null ? entry : { ...entry, signingRoot: null },
    surroundsAnEntry: attestations.some((past) => past.sourceEpoch > sourceEpoch && past.targetEpoch < targetEpoch),
    isSurroundedByAnEntry: attestations.some(
      (past) => past.sourceEpoch < sourceEpoch && past.targetEpoch > targetEpoch,
    ),
    lowWaterSourceEpoch: marks.sourceEpoch,
    lowWaterTargetEpoch: marks.targetEpoch,
  });
}
