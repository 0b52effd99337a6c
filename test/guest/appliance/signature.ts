// The guest's first signature, verified on this side: with another BLS library than the one that made it, over a root
// that this side computes from what was asked for.

import assert from 'node:assert/strict';
import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { parseSignRequest } from '../../../signer/operations/parse.ts';
import { computeSigningRoot } from '../../../signer/sign/message-root.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import type { OutsideCheck } from '../suite.ts';
import { voteRequest } from './programs/votes.ts';

export interface Signed {
  /** Target of the vote. */
  readonly epoch: number;
  readonly publicKey: string;
  readonly text: string;
}

export const SIGNATURE_IS_VALID: OutsideCheck = {
  name: 'the signature is the generated key’s over the vote that was asked for, and over no other',
  check(lines) {
    const line = lines.find((each) => each.startsWith('signed: '));
    assert(line !== undefined, 'the guest shows no signature');
    checkFirstSignature(JSON.parse(line.slice('signed: '.length)) as Signed);
  },
};

export function checkFirstSignature({ epoch, publicKey, text }: Signed): void {
  const signature = Signature.fromHex((JSON.parse(text) as { signature: string }).signature, true);
  const valid = (target: number): boolean => verify(rootOfVote(target), PublicKey.fromHex(publicKey, true), signature);
  assert(valid(epoch), 'the signature is not valid');
  assert(!valid(epoch + 1), 'the signature is valid for another vote');
}

function rootOfVote(epoch: number): Uint8Array {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(voteRequest(epoch))));
  assert(parsed.kind === 'request');
  return computeSigningRoot(parsed.request, publicNetwork('mainnet'));
}
