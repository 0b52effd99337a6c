// Aggregates of the minimal preset: their container has other lengths, and is signed for networks of that preset only.

import { BitArray, BitListType, BitVectorType, ByteVectorType, ContainerType, UintBigintType } from '@chainsafe/ssz';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { forkRefusal } from '../../signer/sign/message-root.ts';
import { makeNetwork, publicNetwork } from '../../signer/sign/networks.ts';
import { versionOf } from '../support/fork-messages.ts';
import { objectRoot } from '../support/operation-rows.ts';

describe('an aggregate of the minimal preset', () => {
  const [root32, uint64] = [new ByteVectorType(32), new UintBigintType(8)];
  const signature = new ByteVectorType(96);
  const checkpoint = new ContainerType({ epoch: uint64, root: root32 });
  const data = new ContainerType({
    slot: uint64,
    index: uint64,
    beaconBlockRoot: root32,
    source: checkpoint,
    target: checkpoint,
  });
  /** The consensus specification sets MAX_COMMITTEES_PER_SLOT to 4. */
  const container = new ContainerType({
    aggregatorIndex: uint64,
    aggregate: new ContainerType({
      aggregationBits: new BitListType(4 * 2048),
      data,
      signature,
      committeeBits: new BitVectorType(4),
    }),
    selectionProof: signature,
  });
  const sepolia = publicNetwork('sepolia');
  /** Electra's first on Sepolia, and its slot where an epoch has 8. */
  const EPOCH = 222_464;
  const SLOT = EPOCH * 8;
  const minimal = makeNetwork({
    ...sepolia,
    name: 'custom',
    preset: 'minimal',
    genesisTimeSeconds: undefined,
    depositChainId: undefined,
  });
  const point = `0x${'ab'.repeat(96)}`;
  const some = (byte: string) => `0x${byte.repeat(32)}`;

  function parsed(committeeBits: string, aggregationBits = '0x0502', slot = SLOT) {
    const source = { epoch: String(EPOCH - 1), root: some('22') };
    const target = { epoch: String(EPOCH), root: some('33') };
    const votes = { slot: String(slot), index: '0', beacon_block_root: some('11'), source, target };
    const aggregate = {
      aggregation_bits: aggregationBits,
      data: votes,
      signature: point,
      committee_bits: committeeBits,
    };
    const version = encodeHex(versionOf(sepolia, 'electra'));
    const body = {
      type: 'AGGREGATE_AND_PROOF',
      fork_info: {
        fork: { previous_version: version, current_version: version, epoch: '0' },
        genesis_validators_root: encodeHex(sepolia.genesisValidatorsRoot),
      },
      aggregate_and_proof: { aggregator_index: '7', aggregate, selection_proof: point },
    };
    return parseSignRequest(Buffer.from(JSON.stringify(body)));
  }
  function taken(committeeBits: string, slot = SLOT): SignRequest {
    const outcome = parsed(committeeBits, '0x0502', slot);
    if (outcome.kind === 'refused') throw new Error(outcome.hint);
    return outcome.request;
  }

  it('has the root of its own container', () => {
    const aggregate = taken('0x03');
    expect(forkRefusal(aggregate, minimal)).toBeUndefined();
    const bytes = (byte: number, length = 32) => new Uint8Array(length).fill(byte);
    const expected = container.hashTreeRoot({
      aggregatorIndex: 7n,
      aggregate: {
        aggregationBits: BitArray.fromBoolArray([true, false, true, false, false, false, false, false, false]),
        data: {
          slot: BigInt(SLOT),
          index: 0n,
          beaconBlockRoot: bytes(0x11),
          source: { epoch: BigInt(EPOCH - 1), root: bytes(0x22) },
          target: { epoch: BigInt(EPOCH), root: bytes(0x33) },
        },
        signature: bytes(0xab, 96),
        committeeBits: BitArray.fromBoolArray([true, true, false, false]),
      },
      selectionProof: bytes(0xab, 96),
    });
    if (aggregate.operation !== 'AGGREGATE_AND_PROOF') throw new Error(aggregate.operation);
    expect(encodeHex(objectRoot(aggregate, 'electra'))).toBe(encodeHex(expected));
  });

  it('is signed for a network of that preset only, and one of another preset not for it', () => {
    const hint = 'aggregate_and_proof.aggregate.committee_bits: of preset';
    expect(forkRefusal(taken('0x03', EPOCH * 32), sepolia)?.hint).toBe(`${hint} mainnet they have 8 bytes`);
    expect(forkRefusal(taken(`0x03${'00'.repeat(7)}`), minimal)?.hint).toBe(`${hint} minimal they have 1 byte`);
  });

  it('has 4 committees and at most 8,192 bits', () => {
    expect(parsed('0x13')).toMatchObject({ kind: 'refused', hint: expect.stringContaining('expected 4 bits') });
    const tooMany = `0x${'00'.repeat(1024)}02`;
    expect(parsed('0x03', tooMany)).toMatchObject({ kind: 'refused', hint: expect.stringContaining('at most 8192') });
  });
});
