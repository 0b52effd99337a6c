// A key's tenure: the time that a key spends in a store, as a number in its head. Even: the key is there, and signs.
// Odd: it left, and signs nothing. A key that a store has never heard of is in tenure 0, so new keys need no write.
//
// An ending always moves on, also from one odd number to the next: a beginning that read an earlier number fails. A
// beginning is a compare-and-set on the number that was read first. A loaded copy of a key carries the number that was
// read with it, and every check compares it (specification/slashing.md#tenure).

/** By public key (`0x` and 96 lower-case hex digits). Keys that it does not name are in tenure 0. */
export type Tenures = ReadonlyMap<string, number>;

export function isEnded(tenure: number): boolean {
  return tenure % 2 === 1;
}

/** The next odd number. */
export function ended(tenure: number): number {
  return tenure + (isEnded(tenure) ? 2 : 1);
}

/** The tenure in which the key signs when it is taken in: the present one, or the next after an ended one. */
export function begun(tenure: number): number {
  return tenure + (isEnded(tenure) ? 1 : 0);
}
