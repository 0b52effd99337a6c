// The object roots of all containers against @lodestar/types, of random contents, 10,000 of each type and fork: from
// the JSON that a client sends, through the parser and our containers, and through theirs. A failure names the seed
// that made the contents.

import { ssz } from '@lodestar/types';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { signingRoot } from '../../signer/sign/message-root.ts';
import { CASES, type Case } from '../sign/lodestar-cases.ts';
import { attestationData, Contents, type Members } from '../sign/lodestar-contents.ts';
import { objectRoot } from '../support/operation-rows.ts';
import { sized } from '../support/scale.ts';

const RUNS = { numRuns: sized(1_000, 10_000) };

const FORK_INFO = {
  fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
  genesis_validators_root: `0x${'00'.repeat(32)}`,
};

function ourRoot({ type, fork, member, wrap }: Case, message: Members): string {
  const body = { type, fork_info: FORK_INFO, [member]: wrap?.(message) ?? message };
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return encodeHex(objectRoot(parsed.request, fork));
}

function theirRoot({ oracle }: Case, message: Members): string {
  return encodeHex(oracle.hashTreeRoot(oracle.fromJson(message) as never));
}

describe('the root of', () => {
  it.each(CASES)('$type in $fork is that of Lodestar', (one) => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const message = one.message(new Contents(seed));
        expect(ourRoot(one, message)).toBe(theirRoot(one, message));
      }),
      RUNS,
    );
  });

  it('a vote, with its domain, is that of Lodestar', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const contents = new Contents(seed);
        const message = attestationData(contents);
        const body = { type: 'ATTESTATION', fork_info: FORK_INFO, attestation: message };
        const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
        if (parsed.kind !== 'request' || parsed.request.operation !== 'ATTESTATION') throw new Error(parsed.kind);
        const domain = Buffer.from(contents.root().slice(2), 'hex');
        const vote = ssz.phase0.AttestationData.hashTreeRoot(ssz.phase0.AttestationData.fromJson(message));
        const expected = ssz.phase0.SigningData.hashTreeRoot({ objectRoot: vote, domain });
        expect(encodeHex(signingRoot(objectRoot(parsed.request, undefined), domain))).toBe(encodeHex(expected));
      }),
      RUNS,
    );
  });
});
