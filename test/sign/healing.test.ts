// Healing (specification/signing.md#healing): over all networks, types, epochs and forks that a client may believe in,
// what is healed is the root that the consensus rules ask for, computed a second time without the signer's code; and
// votes, blocks and whatever is signed once for a slot are never healed.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { ForkName } from '../../signer/api/forks.ts';
import { OPERATIONS } from '../../signer/api/operations.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { healedRoot } from '../../signer/sign/healing.ts';
import { possibleForksAt } from '../../signer/sign/message-root.ts';
import { type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { expectedRoot, scheduledFork } from '../expected/expected-root.ts';
import { messageAt } from '../support/fork-messages.ts';
import { chainOf, PUBLIC_NETWORK_NAMES } from '../support/networks.ts';

const HEALED = [
  'AGGREGATION_SLOT',
  'AGGREGATE_AND_PROOF',
  'PROPOSER_PREFERENCES',
  'RANDAO_REVEAL',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
];
const NEVER = [
  'ATTESTATION',
  'BLOCK_V2',
  'PAYLOAD_ATTESTATION_MESSAGE',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'EXECUTION_PAYLOAD_BID',
];
/** Their messages may state a fork. */
const STATING = ['AGGREGATE_AND_PROOF', 'PROPOSER_PREFERENCES', ...NEVER.slice(1)];
const NETWORKS = PUBLIC_NETWORK_NAMES.map(publicNetwork);

interface Drawn {
  readonly network: Network;
  readonly type: string;
  readonly slot: number;
  readonly forks: { previous: ForkName; current: ForkName; epoch: number; stated?: string };
  readonly root: 'right' | 'as sent' | 'another';
}

/** Epochs around the beginnings of forks, where a client errs, and others. */
const drawn = (types: readonly string[]): fc.Arbitrary<Drawn> =>
  fc.constantFrom(...NETWORKS).chain((network) => {
    const names = network.forks.map(({ name }) => name);
    const beginnings = network.forks.flatMap(({ epoch }) => (epoch === null ? [] : [epoch]));
    const epoch = fc.oneof(
      fc.tuple(fc.constantFrom(...beginnings), fc.integer({ min: -2, max: 2 })).map(([at, by]) => Math.max(0, at + by)),
      fc.nat(2_000_000),
    );
    const fork = fc.constantFrom(...names);
    return fc.record({
      network: fc.constant(network),
      type: fc.constantFrom(...types),
      slot: fc.tuple(epoch, fc.nat(network.slotsPerEpoch - 1)).map(([at, place]) => at * network.slotsPerEpoch + place),
      forks: fc.record(
        {
          previous: fork,
          current: fork,
          epoch,
          stated: fc.constantFrom(...names.map((name) => name.toUpperCase()), 'HEZE'),
        },
        { requiredKeys: ['previous', 'current', 'epoch'] },
      ),
      root: fc.constantFrom('right', 'as sent', 'another'),
    }) as fc.Arbitrary<Drawn>;
  });

function requestOf({ network, type, slot, forks, root }: Drawn): { request: SignRequest; right: string } | undefined {
  const { stated: _, ...unstated } = forks;
  const body = messageAt(network, type, slot, STATING.includes(type) ? forks : unstated) as { type: string };
  const chain = chainOf(network);
  const epoch = Math.floor(slot / network.slotsPerEpoch);
  const fork = scheduledFork(chain, epoch).name;
  // An oracle of today's containers has none for a later message in an earlier fork.
  const isSinceElectra = ['electra', 'fulu', 'gloas'].includes(fork);
  if (type === 'AGGREGATE_AND_PROOF' && !isSinceElectra) return undefined;
  const right = encodeHex(expectedRoot(body, chain));
  const version = epoch < forks.epoch ? forks.previous : forks.current;
  const asSent = { ...chain, forks: chain.forks.map((one) => ({ ...one, epoch: one.name === version ? 0 : null })) };
  const given = { right, 'as sent': encodeHex(expectedRoot(body, asSent)), another: `0x${'77'.repeat(32)}` }[root];
  const parsed = parseSignRequest(Buffer.from(JSON.stringify({ ...body, signingRoot: given })));
  if (parsed.kind === 'refused') throw new Error(parsed.hint);
  return { request: parsed.request, right };
}

describe('healing', () => {
  it('gives no root but the one that the consensus rules ask for, and that the client asked for', () => {
    let healedCount = 0;
    fc.assert(
      fc.property(drawn(HEALED), (one) => {
        const made = requestOf(one);
        if (made === undefined) return;
        const healed = healedRoot(made.request, one.network);
        if (healed === undefined) return;
        healedCount += 1;
        expect(encodeHex(healed.root)).toBe(made.right);
        expect(encodeHex(made.request.givenSigningRoot ?? new Uint8Array())).toBe(made.right);
        const epoch = Math.floor(one.slot / one.network.slotsPerEpoch);
        expect(possibleForksAt(one.network, epoch)).toHaveLength(1);
      }),
      { numRuns: 5000 },
    );
    expect(healedCount).toBeGreaterThan(500);
  });

  it('is never for what is slashable, or signed once for a slot', () => {
    fc.assert(
      fc.property(drawn(NEVER), (one) => {
        const made = requestOf(one);
        if (made !== undefined) expect(healedRoot(made.request, one.network)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it('knows every operation: those that are not here have no fork of their own', () => {
    const others = OPERATIONS.filter((operation) => !HEALED.includes(operation) && !NEVER.includes(operation));
    expect(others).toEqual(['BUILDER_REQUEST_AUTH', 'VALIDATOR_REGISTRATION', 'VOLUNTARY_EXIT']);
  });

  it('needs a schedule that leaves one fork', () => {
    const mainnet = publicNetwork('mainnet'); // where the epoch of Gloas is not announced
    const forks = { previous: 'phase0', current: 'phase0', epoch: 0 } as const;
    const ask = (network: Network) =>
      requestOf({ network, type: 'RANDAO_REVEAL', slot: 500_000 * 32, forks, root: 'right' });
    expect(healedRoot(ask(mainnet)?.request as SignRequest, mainnet)).toBeUndefined();
    const sepolia = publicNetwork('sepolia');
    expect(healedRoot(ask(sepolia)?.request as SignRequest, sepolia)).toMatchObject({ fault: 'earlier_fork' });
    const planned: Network = { ...sepolia, unknownFork: { name: 'HEZE', epoch: 400_000 } };
    expect(healedRoot(ask(sepolia)?.request as SignRequest, planned)).toBeUndefined();
  });
});
