// Whether a message is for a block that its own key signed (specification/authorization.md#own-blocks): the slashing
// store holds the signing root of its header.

import type { ErrorReason } from '../api/errors.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import { computeDomain, messageFork, signingRoot } from './message-root.ts';
import type { Network } from './networks.ts';

interface OwnBlockParts {
  readonly network: Network;
  readonly slashing: Pick<SlashingProtection, 'signedBlockRoot'>;
}

/** @param request one that forkRefusal has nothing against; of an operation that has no block it is refused */
export async function ownBlockRefusal(
  request: SignRequest,
  publicKey: PublicKeyHex,
  { network, slashing }: OwnBlockParts,
  signal: AbortSignal,
): Promise<ErrorReason | undefined> {
  const row: OperationRow = ROWS[request.operation];
  const block = row.block?.(request.message);
  const signed = block && (await slashing.signedBlockRoot(publicKey, block.slot, signal));
  if (block === undefined || signed == null) return 'not_own_block';
  const { version } = messageFork(request, network);
  const domain = computeDomain(ROWS.BLOCK_V2.domain, version, network.genesisValidatorsRoot);
  return Buffer.compare(signed, signingRoot(block.root, domain)) === 0 ? undefined : 'not_own_block';
}
