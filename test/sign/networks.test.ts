// The constants of the networks that are built in. A wrong one makes signatures that nobody accepts, or that another
// chain does.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { FORK_NAMES } from '../../signer/api/forks.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import { computeDomain } from '../../signer/sign/message-root.ts';
import { ephemeryNetwork, type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { PUBLIC_NETWORK_NAMES } from '../support/networks.ts';
import { scheduledForkAt } from '../support/scheduled-fork.ts';
import { vectorJson } from '../support/vectors.ts';

interface PublishedNetwork {
  readonly config_name: string;
  readonly preset: string;
  readonly deposit_chain_id: number | null;
  readonly slot_ms: number;
  readonly slots_per_epoch: number;
  readonly genesis_validators_root: string | null;
  readonly forks: Readonly<Record<string, { readonly version: string; readonly epoch: number | null }>>;
}

const PERIOD = {
  genesisValidatorsRoot: new Uint8Array(32).fill(7),
  genesisTimeSeconds: 1_790_277_000,
};

function builtIn(name: string): Network {
  const known = PUBLIC_NETWORK_NAMES.find((candidate) => candidate === name);
  return known === undefined ? ephemeryNetwork(PERIOD) : publicNetwork(known);
}

/** Ours in the words of the file. */
function asPublished(network: Network): PublishedNetwork {
  const changes = network.name === 'ephemery';
  return {
    config_name: network.configName,
    preset: network.preset,
    deposit_chain_id: changes ? null : (network.depositChainId ?? null),
    slot_ms: network.slotDurationMs,
    slots_per_epoch: network.slotsPerEpoch,
    genesis_validators_root: changes ? null : encodeHex(network.genesisValidatorsRoot),
    forks: Object.fromEntries(
      network.forks.map(({ name, version, epoch }) => [name, { version: encodeHex(version), epoch }]),
    ),
  };
}

const { about: _, ...PUBLISHED } =
  vectorJson<Readonly<Record<string, PublishedNetwork & { readonly note?: string }>>>('gloas/networks.json') ?? {};

describe.skipIf(Object.keys(PUBLISHED).length === 0)('the networks of the vectors', () => {
  it('are those that are built in', () => {
    expect(Object.keys(PUBLISHED).sort()).toEqual([...PUBLIC_NETWORK_NAMES, 'ephemery'].sort());
  });

  it.each(Object.entries(PUBLISHED))('%s has the published constants', (name, { note: _note, ...published }) => {
    expect(asPublished(builtIn(name))).toEqual(published);
  });
});

/**
 * Published instants, UTC: of a fork's first slot, or of genesis where no later one is known to us. Each fixes the
 * genesis time.
 */
const INSTANTS = [
  ['mainnet', 411_392, '2025-12-03T21:49:11Z'],
  ['sepolia', 353_024, '2026-10-06T13:53:36Z'],
  ['hoodi', 132_352, '2026-10-26T17:42:48Z'],
  ['plataberget', 1536, '2026-08-20T07:50:24Z'],
  ['gnosis', 1_337_856, '2025-04-30T14:03:40Z'],
  ['gnosis', 889_856, '2024-03-11T18:30:20Z'],
  ['chiado', 948_224, '2025-03-06T09:43:40Z'],
  ['chiado', 516_608, '2024-01-31T18:15:40Z'],
] as const;

/** Fork data roots as they stand in published domains of these networks. */
const FORK_DATA_ROOTS = [
  ['sepolia', 'phase0', 'a8fee8ee9978418b64f1140b05f699a49ccd9b3fd666c35d4ae5f79e'],
  ['sepolia', 'capella', '47eb72b3be36f08feffcaba760f0a2ed78c1a85f0654941a0d19d0fa'],
  ['sepolia', 'gloas', 'e7626d6f8bf835c77cec81870bdf8b4c76c5f6287cec41d72291599d'],
  ['plataberget', 'gloas', 'd620b8f54e1c0237c64157679dd01e643a0911ba1344e568ee73e279'],
] as const;

/** Fork digests, the first four bytes of the same roots, as every node of the network announces them. */
const FORK_DIGESTS = [
  ['mainnet', 'phase0', 'b5303f2a'],
  ['mainnet', 'capella', 'bba4da96'],
  ['gnosis', 'altair', '56fdb5e0'],
] as const;

describe('the networks that are built in', () => {
  it.each(INSTANTS)('%s: epoch %i begins at %s', (name, epoch, instant) => {
    const { time, slotsPerEpoch, slotDurationMs } = publicNetwork(name);
    const begin = (time?.genesisTimeSeconds ?? 0) * 1000 + epoch * slotsPerEpoch * slotDurationMs;
    expect(new Date(begin).toISOString()).toBe(instant.replace('Z', '.000Z'));
    expect(time).toMatchObject({ slotsPerEpoch, slotDurationMs });
  });

  it.each([...FORK_DATA_ROOTS, ...FORK_DIGESTS])('%s has the known domain of %s', (name, fork, root) => {
    const { forks, genesisValidatorsRoot } = publicNetwork(name);
    const version = forks.find((candidate) => candidate.name === fork)?.version ?? new Uint8Array();
    const domain = computeDomain(ROWS.VOLUNTARY_EXIT.domain, version, genesisValidatorsRoot);
    expect(encodeHex(domain).startsWith(`0x04000000${root}`)).toBe(true);
  });

  it.each(PUBLIC_NETWORK_NAMES)('%s: registrations have phase0’s version, exits Capella’s', (name) => {
    const { forks, genesisForkVersion, capellaForkVersion } = publicNetwork(name);
    expect([genesisForkVersion, capellaForkVersion]).toEqual([forks[0]?.version, forks[3]?.version]);
    expect(forks.map((fork) => fork.name)).toEqual(FORK_NAMES);
  });

  it('no two have a domain in common', () => {
    const networks = [...PUBLIC_NETWORK_NAMES, 'ephemery'].map(builtIn);
    const domains = networks.flatMap(({ forks, genesisValidatorsRoot }) =>
      forks.map(({ version }) => encodeHex(computeDomain(ROWS.ATTESTATION.domain, version, genesisValidatorsRoot))),
    );
    expect(new Set(domains).size).toBe(domains.length);
    expect(domains).toHaveLength(7 * 8);
  });

  it('ephemery takes its genesis from whoever knows the period', () => {
    const network = ephemeryNetwork(PERIOD);
    const { genesisValidatorsRoot } = PERIOD;
    expect(network).toMatchObject({ name: 'ephemery', configName: 'ephemery', genesisValidatorsRoot });
    expect(network.time).toMatchObject({
      genesisTimeSeconds: 1_790_277_000,
      slotDurationMs: 12_000,
      slotsPerEpoch: 32,
    });
    expect(ephemeryNetwork({ ...PERIOD, genesisTimeSeconds: undefined }).time).toBeUndefined();
    expect(scheduledForkAt(network, 0)).toBeUndefined(); // Gloas may have begun with the period
  });
});
