// Which fork a message is of (specification/signing.md#fork-version): the fork version that its domain takes names the
// container, and a stated version, the schedule or a container that contradicts it is refused, each in words of its
// own.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { ForkName } from '../../signer/api/forks.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { computeSigningRoot, forkRefusal, messageFork } from '../../signer/sign/message-root.ts';
import { type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { MESSAGES_OF_GLOAS, messageAt, versionOf } from '../support/fork-messages.ts';
import { PUBLIC_NETWORK_NAMES } from '../support/networks.ts';

const SCHEDULED = PUBLIC_NETWORK_NAMES.map(publicNetwork).filter((network) => gloasEpoch(network) !== null);

function gloasEpoch(network: Network): number | null {
  return network.forks.find(({ name }) => name === 'gloas')?.epoch ?? null;
}

/** As a client sends it that knows of two forks, the later of which begins at `epoch`. */
function request(
  network: Network,
  type: string,
  slot: number,
  forks: { previous: ForkName; current: ForkName; epoch: number; stated?: string },
): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(messageAt(network, type, slot, forks))));
  if (parsed.kind === 'refused') throw new Error(`${type}: ${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}

describe.each(SCHEDULED)('the boundary of Gloas on $name', (network) => {
  const epoch = gloasEpoch(network) as number;
  const firstSlot = epoch * network.slotsPerEpoch;
  const forks = { previous: 'fulu', current: 'gloas', epoch } as const;

  it('the last Fulu slot: the previous version, and the container of Electra', () => {
    const aggregate = request(network, 'AGGREGATE_AND_PROOF', firstSlot - 1, forks);
    expect(forkRefusal(aggregate, network)).toBeUndefined();
    expect(messageFork(aggregate, network).container?.name).toBe('fulu');
    const before = { previous: 'electra', current: 'fulu', epoch: 0 } as const;
    const same = request(network, 'AGGREGATE_AND_PROOF', firstSlot - 1, before);
    expect(computeSigningRoot(same, network)).toEqual(computeSigningRoot(aggregate, network));
  });

  it('the first Gloas slot: the current version, and the container of Gloas', () => {
    const aggregate = request(network, 'AGGREGATE_AND_PROOF', firstSlot, forks);
    expect(forkRefusal(aggregate, network)).toBeUndefined();
    expect(messageFork(aggregate, network).container?.name).toBe('gloas');
  });

  it('preferences for the first Gloas slot are signed in the epoch before, those for the last Fulu slot never', () => {
    const first = request(network, 'PROPOSER_PREFERENCES', firstSlot, forks);
    expect(forkRefusal(first, network)).toBeUndefined();
    expect(forkRefusal(request(network, 'PROPOSER_PREFERENCES', firstSlot - 1, forks), network)).toEqual({
      kind: 'refused',
      reason: 'unsupported_fork',
      hint: 'fork_info: selects the fork version of FULU, which has no PROPOSER_PREFERENCES',
    });
  });

  it.each(['ATTESTATION', 'BLOCK_V2', 'AGGREGATION_SLOT', 'RANDAO_REVEAL', 'SYNC_COMMITTEE_MESSAGE'])(
    'a %s with the version of the other side is refused',
    (type) => {
      const late = { previous: 'electra', current: 'fulu', epoch: 0 } as const;
      const early = { previous: 'fulu', current: 'gloas', epoch: 0 } as const;
      expect(forkRefusal(request(network, type, firstSlot, forks), network)).toBeUndefined();
      expect(forkRefusal(request(network, type, firstSlot - 1, forks), network)).toBeUndefined();
      expect(forkRefusal(request(network, type, firstSlot, late), network)).toMatchObject({
        reason: 'fork_mismatch',
        hint: `fork_info: selects the fork version of FULU, but epoch ${epoch} of the message is in GLOAS`,
      });
      expect(forkRefusal(request(network, type, firstSlot - 1, early), network)).toMatchObject({
        reason: 'fork_mismatch',
        hint: `fork_info: selects the fork version of GLOAS, but epoch ${epoch - 1} of the message is in FULU`,
      });
    },
  );

  it('an exit is signed under Capella, whatever fork it comes with', () => {
    const exit = request(network, 'VOLUNTARY_EXIT', firstSlot, { previous: 'phase0', current: 'phase0', epoch: 0 });
    expect(forkRefusal(exit, network)).toBeUndefined();
  });
});

describe('a stated version', () => {
  const sepolia = publicNetwork('sepolia');
  const epoch = gloasEpoch(sepolia) as number;
  const slot = epoch * 32 + 5;
  const forks = { previous: 'fulu', current: 'gloas', epoch } as const;

  it.each(['AGGREGATE_AND_PROOF', 'AGGREGATE_AND_PROOF_V2', 'BLOCK_V2', ...MESSAGES_OF_GLOAS])(
    'has to name the fork that the version of a %s names',
    (type) => {
      for (const stated of ['GLOAS', 'gloas', 'Gloas'])
        expect(forkRefusal(request(sepolia, type, slot, { ...forks, stated }), sepolia)).toBeUndefined();
      const other = forkRefusal(request(sepolia, type, slot, { ...forks, stated: 'FULU' }), sepolia);
      // Neither its container nor its domain has a fork, and Prysm says PHASE0.
      if (type === 'BUILDER_REQUEST_AUTH') expect(other).toBeUndefined();
      else {
        const hint = 'version: states FULU, but fork_info selects the fork version of GLOAS';
        expect(other).toMatchObject({ reason: 'fork_mismatch', hint });
      }
    },
  );

  it.each(['BLOCK_V2', 'BUILDER_REQUEST_AUTH'])('that is not known here changes nothing of a %s', (type) => {
    expect(forkRefusal(request(sepolia, type, slot, { ...forks, stated: 'HEZE' }), sepolia)).toBeUndefined();
  });

  it.each(['AGGREGATE_AND_PROOF', ...MESSAGES_OF_GLOAS.filter((type) => type !== 'BUILDER_REQUEST_AUTH')])(
    'that is not known here is refused of a %s, unless the schedule leaves no other fork',
    (type) => {
      const heze = { ...forks, stated: 'HEZE' };
      expect(forkRefusal(request(sepolia, type, slot, heze), sepolia)).toBeUndefined();
      const mainnet = publicNetwork('mainnet'); // where Fulu and Gloas are possible
      const onMainnet = { previous: 'fulu', current: 'gloas', epoch: 499_000, stated: 'HEZE' } as const;
      expect(forkRefusal(request(mainnet, type, 500_000 * 32, onMainnet), mainnet)).toEqual({
        kind: 'refused',
        reason: 'unsupported_fork',
        hint: `version: HEZE is no fork known here, and ${type} needs one`,
      });
      const planned: Network = { ...sepolia, unknownFork: { name: 'HEZE', epoch } };
      expect(forkRefusal(request(sepolia, type, slot, heze), planned)?.reason).toBe('unsupported_fork');
    },
  );

  it('is held against the fork version before the schedule is', () => {
    const stale = { previous: 'electra', current: 'fulu', epoch: 0, stated: 'GLOAS' } as const;
    expect(forkRefusal(request(sepolia, 'BLOCK_V2', slot, stale), sepolia)?.hint).toBe(
      'version: states GLOAS, but fork_info selects the fork version of FULU',
    );
  });
});

describe('an aggregate', () => {
  const sepolia = publicNetwork('sepolia');
  const aggregate = (fork: ForkName, epoch: number, committee_bits?: string): SignRequest => {
    const body = messageAt(sepolia, 'AGGREGATE_AND_PROOF', epoch * 32, { previous: fork, current: fork, epoch: 0 });
    const message = body['aggregate_and_proof'] as { aggregate: object };
    const changed = { ...message, aggregate: { ...message.aggregate, committee_bits } };
    const parsed = parseSignRequest(Buffer.from(JSON.stringify({ ...body, aggregate_and_proof: changed })));
    if (parsed.kind === 'refused') throw new Error(parsed.hint);
    return parsed.request;
  };
  const bits = `0x01${'00'.repeat(7)}`;

  it('has committee_bits since Electra, and none before', () => {
    const place = 'aggregate_and_proof.aggregate.committee_bits';
    expect(forkRefusal(aggregate('deneb', 132_608), sepolia)).toBeUndefined();
    expect(forkRefusal(aggregate('deneb', 132_608, bits), sepolia)?.hint).toBe(
      `${place}: the fork of the message, DENEB, has none of these`,
    );
    for (const [fork, epoch] of [
      ['electra', 222_464],
      ['fulu', 272_640],
      ['gloas', 353_024],
    ] as const) {
      expect(forkRefusal(aggregate(fork, epoch, bits), sepolia)).toBeUndefined();
      expect(forkRefusal(aggregate(fork, epoch), sepolia)).toMatchObject({
        reason: 'fork_mismatch',
        hint: `${place}: the fork of the message, ${fork.toUpperCase()}, needs them`,
      });
    }
  });

  it('has another root in each container', () => {
    const roots = [
      computeSigningRoot(aggregate('deneb', 132_608), sepolia),
      computeSigningRoot(aggregate('electra', 222_464, bits), sepolia),
      computeSigningRoot(aggregate('gloas', 353_024, bits), sepolia),
    ];
    expect(new Set(roots.map(encodeHex)).size).toBe(3);
  });
});

describe('a fork version that the table does not have', () => {
  const mainnet = publicNetwork('mainnet');
  const withVersion = (type: string, version: string): SignRequest => {
    const body = messageAt(mainnet, type, 420_000 * 32, { previous: 'fulu', current: 'fulu', epoch: 0 });
    const fork_info = body['fork_info'] as { fork: object };
    const fork = { ...fork_info.fork, current_version: version };
    const parsed = parseSignRequest(Buffer.from(JSON.stringify({ ...body, fork_info: { ...fork_info, fork } })));
    if (parsed.kind === 'refused') throw new Error(parsed.hint);
    return parsed.request;
  };
  const CHANGED = ['AGGREGATE_AND_PROOF', ...MESSAGES_OF_GLOAS.filter((type) => type !== 'BUILDER_REQUEST_AUTH')];

  it.each(CHANGED)('is unsupported_fork for %s', (type) => {
    expect(forkRefusal(withVersion(type, '0x08000000'), mainnet)).toMatchObject({ reason: 'unsupported_fork' });
  });

  it.each([
    'ATTESTATION',
    'AGGREGATION_SLOT',
    'RANDAO_REVEAL',
    'SYNC_COMMITTEE_MESSAGE',
    'SYNC_COMMITTEE_SELECTION_PROOF',
    'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
    'BLOCK_V2',
  ])('is signed with by %s, whose container no fork has changed', (type) => {
    const unknown = withVersion(type, '0x08000000');
    expect(forkRefusal(unknown, mainnet)).toBeUndefined();
    expect(computeSigningRoot(unknown, mainnet)).not.toEqual(
      computeSigningRoot(withVersion(type, encodeHex(versionOf(mainnet, 'fulu'))), mainnet),
    );
  });
});

describe('where the epoch of Gloas is not known', () => {
  const mainnet = publicNetwork('mainnet');
  const slot = 500_000 * 32;

  it('the version alone names the fork, so mainnet works on the day of its fork', () => {
    for (const type of ['AGGREGATE_AND_PROOF', 'ATTESTATION', ...MESSAGES_OF_GLOAS]) {
      const gloas = request(mainnet, type, slot, { previous: 'fulu', current: 'gloas', epoch: 499_000 });
      expect([type, forkRefusal(gloas, mainnet)]).toEqual([type, undefined]);
    }
    const fulu = request(mainnet, 'AGGREGATE_AND_PROOF', slot, { previous: 'fulu', current: 'gloas', epoch: 500_001 });
    expect(forkRefusal(fulu, mainnet)).toBeUndefined();
    expect(messageFork(fulu, mainnet).container?.name).toBe('fulu');
  });

  it('what is certain is still held against it', () => {
    const electra = request(mainnet, 'ATTESTATION', slot, { previous: 'electra', current: 'electra', epoch: 0 });
    expect(forkRefusal(electra, mainnet)?.hint).toBe(
      'fork_info: selects the fork version of ELECTRA, but epoch 500000 of the message is in FULU or GLOAS',
    );
    const early = request(mainnet, 'ATTESTATION', 411_391 * 32, { previous: 'gloas', current: 'gloas', epoch: 0 });
    expect(forkRefusal(early, mainnet)?.reason).toBe('fork_mismatch');
  });
});

describe('forks before Fulu', () => {
  const MESSAGES = ['AGGREGATE_AND_PROOF', 'ATTESTATION', 'BLOCK_V2', 'RANDAO_REVEAL', 'SYNC_COMMITTEE_MESSAGE'];
  const changes = PUBLIC_NETWORK_NAMES.map(publicNetwork).flatMap((network) =>
    network.forks.flatMap(({ name: after, epoch }, place) => {
      const before = network.forks[place - 1];
      const isOne = before?.epoch != null && before.epoch > 0 && epoch !== null && epoch > before.epoch;
      return isOne && after !== 'gloas' ? [{ network, name: network.name, before: before.name, after, epoch }] : [];
    }),
  );

  it.each(changes)('$name, $after: held to the schedule on both sides', ({ network, before, after, epoch }) => {
    const first = epoch * network.slotsPerEpoch;
    const right = { previous: before, current: after, epoch };
    for (const type of MESSAGES.slice(1)) {
      for (const slot of [first - 1, first]) {
        expect(forkRefusal(request(network, type, slot, right), network)).toBeUndefined();
      }
    }
    for (const type of MESSAGES) {
      const late = request(network, type, first, { ...right, current: before });
      expect(forkRefusal(late, network)?.hint).toContain(`but epoch ${epoch} of the message is in`);
      const early = request(network, type, first - 1, { ...right, previous: after });
      expect(forkRefusal(early, network)?.hint).toContain(`but epoch ${epoch - 1} of the message is in`);
    }
  });

  it('are held to it on a network of one’s own from its first epoch on', () => {
    const custom: Network = { ...publicNetwork('sepolia'), name: 'custom' };
    const electra = request(custom, 'ATTESTATION', 161, { previous: 'deneb', current: 'electra', epoch: 5 });
    expect(forkRefusal(electra, custom)?.hint).toBe(
      'fork_info: selects the fork version of ELECTRA, but epoch 5 of the message is in PHASE0',
    );
  });

  it('are not held to it in phase 0 of a public network: test chains hurry through them under its root', () => {
    const mainnet = publicNetwork('mainnet');
    const hurried = request(mainnet, 'ATTESTATION', 161, { previous: 'deneb', current: 'electra', epoch: 5 });
    expect(forkRefusal(hurried, mainnet)).toBeUndefined();
    const fulu = request(mainnet, 'ATTESTATION', 161, { previous: 'electra', current: 'fulu', epoch: 5 });
    expect(forkRefusal(fulu, mainnet)?.reason).toBe('fork_mismatch');
  });
});

describe('a fork that the network plans and that has no name here', () => {
  const sepolia = publicNetwork('sepolia');
  const network: Network = { ...sepolia, name: 'custom', unknownFork: { name: 'HEZE', epoch: 353_030 } };
  const gloas = { previous: 'gloas', current: 'gloas', epoch: 353_024 } as const;

  it.each(['AGGREGATE_AND_PROOF', 'ATTESTATION', 'RANDAO_REVEAL', 'PAYLOAD_ATTESTATION_MESSAGE'])(
    'ends the last known one: %s',
    (type) => {
      const last = 353_030 * 32 - 1;
      expect(forkRefusal(request(network, type, last, gloas), network)).toBeUndefined();
      expect(forkRefusal(request(network, type, last + 1, gloas), network)).toEqual({
        kind: 'refused',
        reason: 'fork_mismatch',
        hint: 'fork_info: selects the fork version of GLOAS, but epoch 353030 of the message is in HEZE',
      });
      expect(forkRefusal(request(sepolia, type, last + 1, gloas), sepolia)).toBeUndefined();
    },
  );
});
