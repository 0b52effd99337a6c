// What an operator's command writes into a store besides its records, for the signers that use the store afterwards.

import { incarnationText, readIncarnations } from '../../signer/slashing/incarnation.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';

const MAX_WEB3SIGNERS = 16;
const MAX_ATTEMPTS = 10;

/** After a jump by hand: the store says so until a signer uses it again. */
export async function noteRaisedByHand(backend: Pick<SlashingBackend, 'identity' | 'incarnate'>): Promise<void> {
  const { incarnation } = await backend.identity();
  await backend.incarnate(incarnation, incarnationText({ ...readIncarnations(incarnation), isRaised: true }));
}

/**
 * After the merge of a database of Web3Signer, or the jump that waives it. What ends between merge and note is merged
 * once more, which changes nothing.
 * @throws Error when signers of the store renew it all the time
 */
export async function noteWeb3Signer(
  backend: Pick<SlashingBackend, 'identity' | 'incarnate'>,
  database: string,
): Promise<void> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const { incarnation } = await backend.identity();
    const own = readIncarnations(incarnation);
    const others = own.web3signers.filter((name) => name !== database);
    const web3signers = [database, ...others].slice(0, MAX_WEB3SIGNERS);
    if (await backend.incarnate(incarnation, incarnationText({ ...own, web3signers }))) return;
  }
  throw new Error('the store does not keep which database of Web3Signer was merged: run the same command again');
}
