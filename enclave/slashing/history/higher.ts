// Compares slots and epochs, or their absence, wherever marks are raised. Pure.

/** The higher of two marks; null is lower than every number. */
export function higher<Other extends number | null>(mark: number | null, other: Other): number | Other {
  if (mark === null) return other;
  return other === null || mark > other ? mark : other;
}
