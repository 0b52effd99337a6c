// The proofs of RFC 9162 as an auditor makes and verifies them. Apart from tree.ts because no signer needs them.

import { type NodeReader, nodeHash, rangeRoot, splitOf } from './tree.ts';

/** RFC 9162 §2.1.4.1 @throws RangeError when the first is no tree of this one's begin */
export function consistencyProof(first: number, size: number, node: NodeReader): Buffer[] {
  if (!(first > 0 && first <= size)) throw new RangeError('no begin of this tree');
  const proof: Buffer[] = [];
  let low = 0;
  let high = size;
  while (first !== high) {
    const middle = low + splitOf(high - low);
    const goesLeft = first <= middle;
    proof.push(goesLeft ? rangeRoot(middle, high, node) : rangeRoot(low, middle, node));
    if (goesLeft) high = middle;
    else low = middle;
  }
  if (low > 0) proof.push(rangeRoot(low, high, node));
  return proof.toReversed();
}

/** RFC 9162 §2.1.3.2 */
export function provesInclusion(
  entryHash: Uint8Array,
  index: number,
  { size, root }: TreeState,
  proof: readonly Uint8Array[],
): boolean {
  if (!isCount(index) || !isCount(size) || index >= size) return false;
  let [leaf, last, hash] = [index, size - 1, entryHash];
  for (const part of proof) {
    if (last === 0) return false;
    if (leaf % 2 === 1 || leaf === last) {
      hash = nodeHash(part, hash);
      [leaf, last] = withoutZeros(leaf, last);
    } else {
      hash = nodeHash(hash, part);
    }
    [leaf, last] = [half(leaf), half(last)];
  }
  return last === 0 && Buffer.compare(hash, root) === 0;
}

interface TreeState {
  readonly size: number;
  readonly root: Uint8Array;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function half(value: number): number {
  return Math.floor(value / 2);
}

function withoutZeros(leaf: number, last: number): [number, number] {
  let [a, b] = [leaf, last];
  while (a % 2 === 0 && a !== 0) [a, b] = [half(a), half(b)];
  return [a, b];
}
