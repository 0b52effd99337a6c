// What was probably meant by a name that does not exist.

const MAX_DISTANCE = 3;

const MIN_BEGINNING = 4;

export function nearest(written: string, known: Iterable<string>): string | undefined {
  const names = [...known];
  return mostAlike(written, names) ?? onlyOneThatBegins(written, names);
}

function onlyOneThatBegins(beginning: string, known: readonly string[]): string | undefined {
  if (beginning.length < MIN_BEGINNING) return undefined;
  const [only, ...others] = known.filter((name) => name.startsWith(beginning));
  return others.length === 0 ? only : undefined;
}

function mostAlike(written: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(MAX_DISTANCE, Math.floor(written.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - written.length) >= bestDistance) continue;
    const distance = editDistance(written, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Edits and exchanges of two neighbours (optimal string alignment). */
function editDistance(left: string, right: string): number {
  let beforeThat: readonly number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const exchanged =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
          ? (beforeThat[column - 2] ?? 0) + 1
          : substitution;
      current.push(Math.min(substitution, exchanged, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    beforeThat = previous;
    previous = current;
  }
  return previous[right.length] ?? 0;
}
