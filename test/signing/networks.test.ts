// The constants of the public networks. A wrong one makes signatures that nobody accepts, or that another chain does.

import { describe, expect, it, test } from 'vitest';
import { PUBLIC_NETWORK_NAMES, publicNetwork } from '../../enclave/signing/networks.ts';
import { computeDomain, DOMAIN_TYPES } from '../../enclave/signing/roots/domains.ts';
import { encodeHex } from '../../formats/hex.ts';

/** What eth-clients/<network> and the clients' own configurations publish. */
const PUBLISHED = {
  mainnet: ['0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95', '0x00000000', '0x03000000'],
  hoodi: ['0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f', '0x10000910', '0x40000910'],
  sepolia: ['0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078', '0x90000069', '0x90000072'],
} as const;

/** Fork data roots as they stand in published domains of these networks: of the genesis fork, and of Capella. */
const FORK_DATA_ROOTS = [
  ['sepolia', 'genesisForkVersion', 'a8fee8ee9978418b64f1140b05f699a49ccd9b3fd666c35d4ae5f79e'],
  ['sepolia', 'capellaForkVersion', '47eb72b3be36f08feffcaba760f0a2ed78c1a85f0654941a0d19d0fa'],
] as const;

/** Fork digests, the first four bytes of the same roots, as every node of mainnet announces them. */
const FORK_DIGESTS = [
  ['mainnet', 'genesisForkVersion', 'b5303f2a'],
  ['mainnet', 'capellaForkVersion', 'bba4da96'],
] as const;

describe('the public networks', () => {
  it.each(PUBLIC_NETWORK_NAMES)('%s has the published constants', (name) => {
    const { genesisValidatorsRoot, genesisForkVersion, capellaForkVersion } = publicNetwork(name);
    expect([genesisValidatorsRoot, genesisForkVersion, capellaForkVersion].map(encodeHex)).toEqual(PUBLISHED[name]);
  });

  test.each([...FORK_DATA_ROOTS, ...FORK_DIGESTS])('%s has the known domain of its %s', (name, version, root) => {
    const network = publicNetwork(name);
    const domain = computeDomain(DOMAIN_TYPES.VOLUNTARY_EXIT, network[version], network.genesisValidatorsRoot);
    expect(encodeHex(domain).startsWith(`0x04000000${root}`)).toBe(true);
  });
});
