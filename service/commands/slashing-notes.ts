// What an operator's command writes into a store besides its records, for the signers that use the store afterwards.

import { changeIncarnations } from '../../signer/slashing/incarnation.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';

const MAX_WEB3SIGNERS = 16;

/** After a jump by hand: the store says so until a signer uses it again. */
export async function noteRaisedByHand(backend: Pick<SlashingBackend, 'identity' | 'incarnate'>): Promise<void> {
  await changeIncarnations(backend, (before) => ({ ...before, isRaised: true }));
}

/**
 * After the merge of a database of Web3Signer, or the jump that waives it. What ends between merge and note is merged
 * once more, which changes nothing.
 */
export async function noteWeb3Signer(
  backend: Pick<SlashingBackend, 'identity' | 'incarnate'>,
  database: string,
): Promise<void> {
  await changeIncarnations(backend, (before) => {
    const others = before.web3signers.filter((name) => name !== database);
    return { ...before, web3signers: [database, ...others].slice(0, MAX_WEB3SIGNERS) };
  });
}
