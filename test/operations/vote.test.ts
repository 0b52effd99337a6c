// The signing root of a vote that is worked out in place is that of the SSZ library, for every vote the parser lets
// through.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { AttestationData, SigningData } from '../../signer/operations/containers.ts';
import { voteRoot } from '../../signer/operations/vote.ts';
import { signingRoot } from '../../signer/sign/message-root.ts';

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const slotOrEpoch = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER));
const checkpoint = fc.record({ epoch: slotOrEpoch, root: bytes32 });
const vote = fc.record({
  slot: slotOrEpoch,
  index: fc.oneof(fc.bigInt(0n, 63n), fc.bigInt(0n, 2n ** 64n - 1n), fc.constant(2n ** 64n - 1n)),
  beacon_block_root: bytes32,
  source: checkpoint,
  target: checkpoint,
});

it('is the library’s, for any vote and domain', () => {
  fc.assert(
    fc.property(vote, bytes32, (message, domain) => {
      const expected = SigningData.hashTreeRoot({ object_root: AttestationData.hashTreeRoot(message), domain });
      expect(signingRoot(voteRoot(message), domain)).toEqual(expected);
    }),
    { numRuns: 2000 },
  );
});

it('of one vote stays what it is while others are worked out', () => {
  const [first, second] = fc.sample(vote, { numRuns: 2, seed: 1 });
  const domain = new Uint8Array(32).fill(7);
  if (first === undefined || second === undefined) throw new Error('unreachable');
  const root = signingRoot(voteRoot(first), domain);
  const copy = Uint8Array.from(root);
  expect(signingRoot(voteRoot(second), domain)).not.toEqual(root);
  expect(root).toEqual(copy);
  expect(signingRoot(voteRoot(first), domain)).toEqual(copy);
});
