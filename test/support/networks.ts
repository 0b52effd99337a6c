// The built-in networks, for tests that hold for each of them.

import { encodeHex } from '../../common/formats/hex.ts';
import { PUBLIC_NETWORKS } from '../../signer/api/network-table.ts';
import type { Network } from '../../signer/sign/networks.ts';
import type { Chain } from '../expected/expected-root.ts';

/** Every constant of theirs is built in. */
export const PUBLIC_NETWORK_NAMES = (Object.keys(PUBLIC_NETWORKS) as (keyof typeof PUBLIC_NETWORKS)[]).filter(
  (name) => name !== 'ephemery',
);

/** A network as the independent computation of roots takes it. */
export function chainOf({ genesisValidatorsRoot, slotsPerEpoch, forks }: Network): Chain {
  return {
    genesisValidatorsRoot: encodeHex(genesisValidatorsRoot),
    slotsPerEpoch,
    forks: forks.map(({ name, version, epoch }) => ({ name, version: encodeHex(version), epoch })),
  };
}
