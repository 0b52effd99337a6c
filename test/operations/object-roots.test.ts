// What a signing root and its domain are made of: the fork version by the epoch, exits under Capella, and what slashing
// protection is asked about a request.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import { computeDomain, computeSigningRoot } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { slashableMessage } from '../support/operation-rows.ts';
import { hexBytes, MAINNET, requestOf } from './requests.ts';

describe('domains', () => {
  it('the known domain of a mainnet proposer in Bellatrix', () => {
    // Published in the tests of several clients.
    const domain = computeDomain(ROWS.BLOCK_V2.domain, hexBytes('0x02000000'), MAINNET.genesisValidatorsRoot);
    expect(encodeHex(domain)).toBe('0x000000004a26c58b08add8089b75caa540848881a8d4f0af0be83417a85c0f45');
  });

  it('the known domain of a builder registration on mainnet', () => {
    const domain = computeDomain(ROWS.VALIDATOR_REGISTRATION.domain, MAINNET.genesisForkVersion, new Uint8Array(32));
    expect(encodeHex(domain)).toBe('0x00000001f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a9');
  });
});

const EXIT = {
  type: 'VOLUNTARY_EXIT',
  fork_info: {
    fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
    genesis_validators_root: encodeHex(MAINNET.genesisValidatorsRoot),
  },
  voluntary_exit: { epoch: '500000', validator_index: '7' },
};

function exitRootUnder(previous_version: string, current_version: string, epoch: string): Uint8Array {
  const fork_info = { ...EXIT.fork_info, fork: { previous_version, current_version, epoch } };
  return computeSigningRoot(requestOf({ ...EXIT, fork_info }), MAINNET);
}

describe('the fork version', () => {
  const fork = { previous_version: '0x05000000', current_version: '0x06000000', epoch: '10' };
  const rootAt = (slot: string, changed: object): string => {
    const fork_info = { ...EXIT.fork_info, fork: { ...fork, ...changed } };
    return encodeHex(
      computeSigningRoot(requestOf({ type: 'AGGREGATION_SLOT', fork_info, aggregation_slot: { slot } }), MAINNET),
    );
  };

  it('is the previous one until the last slot before the epoch of the fork', () => {
    expect(rootAt('319', {})).not.toBe(rootAt('319', { previous_version: '0x00000001' }));
    expect(rootAt('319', {})).toBe(rootAt('319', { current_version: '0x00000001' }));
  });

  it('is the current one from the first slot of the epoch of the fork', () => {
    expect(rootAt('320', {})).toBe(rootAt('320', { previous_version: '0x00000001' }));
    expect(rootAt('320', {})).not.toBe(rootAt('320', { current_version: '0x00000001' }));
  });
});

describe('voluntary exits (EIP-7044)', () => {
  it('have one root, whether the client sends the real fork or Capella', () => {
    const capella = exitRootUnder('0x03000000', '0x03000000', '194048');
    expect(exitRootUnder('0x05000000', '0x06000000', '411392')).toEqual(capella);
    expect(exitRootUnder('0x00000000', '0x01000000', '0')).toEqual(capella);
  });

  it.each(['mainnet', 'hoodi', 'sepolia'] as const)('are bound to %s', (name) => {
    const network = publicNetwork(name);
    const others = (['mainnet', 'hoodi', 'sepolia'] as const).filter((other) => other !== name);
    const root = encodeHex(computeSigningRoot(requestOf(EXIT), network));
    for (const other of others)
      expect(encodeHex(computeSigningRoot(requestOf(EXIT), publicNetwork(other)))).not.toBe(root);
  });
});

describe('what slashing protection is asked', () => {
  const root = new Uint8Array(32).fill(1);
  const publicKey = `0x${'ab'.repeat(48)}`;
  const block = {
    type: 'BLOCK_V2',
    fork_info: EXIT.fork_info,
    beacon_block: {
      version: 'DENEB',
      block_header: {
        slot: '9007199254740991',
        proposer_index: '1',
        parent_root: '11'.repeat(32),
        state_root: '22'.repeat(32),
        body_root: '33'.repeat(32),
      },
    },
  };

  it('for a block, its slot', () => {
    expect(slashableMessage(requestOf(block), { publicKey, tenure: 2 }, root)).toEqual({
      kind: 'block',
      publicKey,
      tenure: 2,
      slot: 9007199254740991,
      signingRoot: root,
    });
  });

  it('for an attestation, its source and target epochs', () => {
    const attestation = {
      type: 'ATTESTATION',
      fork_info: EXIT.fork_info,
      attestation: {
        slot: '130',
        index: '0',
        beacon_block_root: '11'.repeat(32),
        source: { epoch: '3', root: '22'.repeat(32) },
        target: { epoch: '4', root: '33'.repeat(32) },
      },
    };
    expect(slashableMessage(requestOf(attestation), { publicKey, tenure: 4 }, root)).toEqual({
      kind: 'attestation',
      publicKey,
      tenure: 4,
      sourceEpoch: 3,
      targetEpoch: 4,
      signingRoot: root,
    });
  });

  it('for anything else, nothing', () => {
    expect(slashableMessage(requestOf(EXIT), { publicKey, tenure: 0 }, root)).toBeNull();
  });
});
