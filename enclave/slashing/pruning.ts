// What may be forgotten of a signing history, and when. A backend prunes one key by the rule below; the scheduler here
// only calls it, in small steps, in the background.
//
// The rule. Entries of blocks with a slot below `highest slot - RETAINED_SLOTS`, and of votes with a target below
// `highest target - RETAINED_EPOCHS`, are deleted, and in the same transaction the low-water marks rise:
//   slot mark   = max(itself, lowest slot kept)
//   target mark = max(itself, lowest target kept)
//   source mark = max(itself, highest source deleted, lowest source kept)
// The highest entry always stays. No verdict becomes weaker: a block or a vote that a deleted entry refused lies at or
// below the slot or target mark (double messages, votes surrounded by it) or has a source below the source mark (votes
// that surround it). Only repeats of deleted messages change, from allowed to refused.

/** Epochs of votes kept behind the highest target of a key: as Lighthouse keeps, two days and more. */
export const RETAINED_EPOCHS = 512;
/** Slots of blocks kept behind the highest slot of a key: the same time. */
export const RETAINED_SLOTS = RETAINED_EPOCHS * 32;
