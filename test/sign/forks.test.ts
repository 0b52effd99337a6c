// Which fork a version names, and which forks can be in force at an epoch: at each boundary of each network, and where
// the table does not say.

import { describe, expect, it } from 'vitest';
import { contradictedBy, forkOfVersion, possibleForksAt } from '../../signer/sign/message-root.ts';
import { type Fork, type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { PUBLIC_NETWORK_NAMES } from '../support/networks.ts';
import { scheduledForkAt } from '../support/scheduled-fork.ts';

const UNKNOWN = Uint8Array.of(9, 9, 9, 9);

function fork(name: Fork['name'], first: number, epoch: number | null): Fork {
  return { name, version: Uint8Array.of(first, 0, 0, 1), epoch };
}

function contradicted(network: Network, version: Uint8Array, epoch: number) {
  const named = forkOfVersion(network, version);
  if (named === undefined) throw new Error('the table names this version');
  return contradictedBy(network, named, epoch);
}

function namesAt(forks: readonly Fork[], epoch: number): readonly string[] {
  return possibleForksAt({ forks }, epoch).map(({ name }) => name);
}

describe('the fork of a version', () => {
  it.each(PUBLIC_NETWORK_NAMES)('is found for each version of %s', (name) => {
    const network = publicNetwork(name);
    for (const each of network.forks) expect(forkOfVersion(network, each.version)).toBe(each);
    expect(forkOfVersion(network, UNKNOWN)).toBeUndefined();
  });

  it('is not found on another network', () => {
    const { version } = publicNetwork('hoodi').forks[7] as Fork;
    expect(forkOfVersion(publicNetwork('sepolia'), version)).toBeUndefined();
  });

  it('is not guessed when two forks have one version', () => {
    const forks = [fork('phase0', 1, 0), fork('capella', 1, null), fork('deneb', 2, null)];
    expect(forkOfVersion({ forks }, Uint8Array.of(1, 0, 0, 1))).toBeUndefined();
    expect(forkOfVersion({ forks }, Uint8Array.of(2, 0, 0, 1))?.name).toBe('deneb');
  });
});

describe('the fork at an epoch', () => {
  const boundaries = PUBLIC_NETWORK_NAMES.flatMap((name) => {
    const { forks } = publicNetwork(name);
    return forks.flatMap(({ epoch }, place) => {
      const isLastAtItsEpoch = forks[place + 1]?.epoch !== epoch;
      const before = forks.findLast((earlier) => earlier.epoch !== null && epoch !== null && earlier.epoch < epoch);
      return epoch === null || before === undefined || !isLastAtItsEpoch
        ? []
        : [[name, epoch, before, forks[place] as Fork] as const];
    });
  });

  it.each(boundaries)('%s changes at epoch %i', (name, epoch, before, after) => {
    const network = publicNetwork(name);
    expect(scheduledForkAt(network, epoch - 1)).toEqual(before);
    expect(possibleForksAt(network, epoch)[0]).toEqual(after);
  });

  it('covers Gloas where its epoch is known', () => {
    expect(boundaries.filter(([, , , after]) => after.name === 'gloas').map(([name]) => name)).toEqual([
      'hoodi',
      'sepolia',
      'plataberget',
    ]);
  });

  it('is the last of those that begin together', () => {
    expect(scheduledForkAt(publicNetwork('hoodi'), 0)?.name).toBe('deneb');
    expect(scheduledForkAt(publicNetwork('plataberget'), 0)?.name).toBe('fulu');
  });

  it('is open from the last known fork on when the next is not announced', () => {
    const { forks } = publicNetwork('mainnet');
    expect(namesAt(forks, 411_391)).toEqual(['electra']);
    expect(namesAt(forks, 411_392)).toEqual(['fulu', 'gloas']);
    expect(namesAt(forks, Number.MAX_SAFE_INTEGER)).toEqual(['fulu', 'gloas']);
    expect(scheduledForkAt({ forks }, 411_392)).toBeUndefined();
  });

  it('lies between what is known when epochs in the middle are not', () => {
    const forks = [fork('phase0', 0, 0), fork('altair', 1, null), fork('bellatrix', 2, 10), fork('capella', 3, null)];
    expect(namesAt(forks, 9)).toEqual(['phase0', 'altair']);
    expect(namesAt(forks, 10)).toEqual(['bellatrix', 'capella']);
  });

  it('is any of them when only versions are known', () => {
    expect(namesAt([fork('phase0', 0, 0), fork('capella', 3, null)], 0)).toEqual(['phase0', 'capella']);
    expect(namesAt([fork('phase0', 0, null), fork('capella', 3, null)], 5)).toEqual(['phase0', 'capella']);
  });
});

describe('a version at an epoch', () => {
  const sepolia = publicNetwork('sepolia');
  const mainnet = publicNetwork('mainnet');
  const [fulu, gloas] = sepolia.forks.slice(6) as [Fork, Fork];

  it.each([
    ['Fulu in its last epoch', fulu, 353_023, undefined],
    ['Fulu in the first epoch of Gloas', fulu, 353_024, [gloas]],
    ['Gloas in the last epoch of Fulu', gloas, 353_023, [fulu]],
    ['Gloas in its first epoch', gloas, 353_024, undefined],
  ])('on Sepolia: %s, which forks are possible instead', (_, { version }, epoch, possible) => {
    expect(forkOfVersion(sepolia, version)).toBeDefined();
    expect(contradicted(sepolia, version, epoch)).toEqual(possible);
  });

  it('of a fork without an announced epoch agrees from the fork before it on', () => {
    const version = Uint8Array.of(7, 0, 0, 0);
    expect(contradicted(mainnet, version, 411_391)).toHaveLength(1);
    expect(contradicted(mainnet, version, 411_392)).toBeUndefined();
    expect(contradicted(mainnet, Uint8Array.of(6, 0, 0, 0), 500_000)).toBeUndefined();
  });

  it('that the table does not have is of no fork', () => {
    expect(forkOfVersion(sepolia, UNKNOWN)).toBeUndefined();
  });
});
