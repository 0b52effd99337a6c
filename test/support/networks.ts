// The built-in networks, for tests that hold for each of them.

import { PUBLIC_NETWORKS } from '../../enclave/signing/network-table.ts';

/** Every constant of theirs is built in. */
export const PUBLIC_NETWORK_NAMES = (Object.keys(PUBLIC_NETWORKS) as (keyof typeof PUBLIC_NETWORKS)[]).filter(
  (name) => name !== 'ephemery',
);
