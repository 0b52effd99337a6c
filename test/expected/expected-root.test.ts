// The second computation of signing roots (test/expected/expected-root.ts) against the Gloas vectors, which come
// from neither it nor the signer.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { gloasVectors } from '../support/gloas.ts';
import { chainOf } from '../support/networks.ts';
import { expectedRoot } from './expected-root.ts';

describe.skipIf(gloasVectors === undefined)('the expected root', () => {
  // Inclusion lists (EIP-7805) have no type in the API.
  const vectors = gloasVectors?.vectors.filter(({ request }) => request.type !== 'INCLUSION_LIST') ?? [];
  it.each(vectors)('of "$name" is that of the vector', ({ request, signing_root }) => {
    expect(encodeHex(expectedRoot(request, chainOf(publicNetwork('sepolia'))))).toBe(signing_root);
  });
});
