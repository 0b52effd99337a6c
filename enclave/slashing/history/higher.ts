// What is compared wherever marks are raised: slots and epochs, or none yet. Pure.

/** The higher of two marks; null is lower than every number. */
export function higher<Other extends number | null>(mark: number | null, other: Other): number | Other {
  if (mark === null) return other;
  return other === null || mark > other ? mark : other;
}
