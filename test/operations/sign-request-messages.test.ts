// What the parser of signing requests takes and refuses in aggregates, their bits, and blocks: the shape of each fork.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import {
  accepted,
  aggregateAndProof,
  aggregating,
  attestation,
  forkInfo,
  header,
  malformed,
  parse,
  proposing,
  ROOT,
  refusal,
  SIGNATURE,
} from '../api/sign-bodies.ts';
import { messageAt } from '../support/fork-messages.ts';

const contribution = {
  aggregator_index: '1',
  selection_proof: SIGNATURE,
  contribution: {
    slot: '1',
    beacon_block_root: ROOT,
    subcommittee_index: '0',
    aggregation_bits: '0x01',
    signature: SIGNATURE,
  },
};

const withBits = (aggregation_bits: string, committee_bits?: string) =>
  aggregating({
    ...aggregateAndProof,
    aggregate: { ...aggregateAndProof.aggregate, aggregation_bits, committee_bits },
  });

const allBits = (bits: number): string => `0x${'ff'.repeat(bits / 8)}01`;
const wholeBlock = (version: string, body: object) => proposing({ version, block: { ...header, body } });
const unsupported = (place: string) => refusal('unsupported_fork', `${place}: no fork known here`);

describe('aggregates', () => {
  const electra = {
    ...aggregateAndProof,
    aggregate: { ...aggregateAndProof.aggregate, committee_bits: '0x0100000000000000' },
  };

  it.each([
    ['V1 bare', aggregating(aggregateAndProof, 'AGGREGATE_AND_PROOF')],
    ['V1 bare, Electra', aggregating(electra, 'AGGREGATE_AND_PROOF')],
    ['V2, upper case', aggregating({ version: 'ELECTRA', data: electra })],
    ['V2, lower case', aggregating({ version: 'fulu', data: electra })],
    ['V2 bare', aggregating(electra)],
    ['V2, PHASE0', aggregating({ version: 'PHASE0', data: aggregateAndProof })],
    ['V2, GLOAS', aggregating({ version: 'GLOAS', data: electra })],
    ['V1, with a version beside the members', aggregating({ version: 'Gloas', ...electra }, 'AGGREGATE_AND_PROOF')],
  ])('come as %s', (_name, body) => {
    const request = accepted(body);
    expect(request.operation).toBe('AGGREGATE_AND_PROOF');
    expect(request.message).toMatchObject({ aggregator_index: 1n, aggregate: { data: { slot: 32 } } });
  });

  it.each(['HEZE', 'FROBNICATE', 'constructor'])('of the fork %s keep its name, in any shape', (version) => {
    const kept = { version: version.toLowerCase() };
    expect(accepted(aggregating({ version, data: electra })).message).toMatchObject(kept);
    expect(accepted(aggregating({ version, ...electra })).message).toMatchObject(kept);
  });

  it('of a fork that is not known here are told so when they have another shape', () => {
    const version = 'HEZE';
    expect(parse(aggregating({ version, data: { new_member: '1' } }))).toEqual(
      unsupported('aggregate_and_proof.version'),
    );
    expect(parse(proposing({ version, block: header }))).toEqual(unsupported('beacon_block.version'));
  });

  it('keep the fork that they state, and may not state two', () => {
    expect(accepted(aggregating({ version: 'gLOAS', data: electra })).message).toMatchObject({ version: 'gloas' });
    expect(accepted(aggregating({ version: 'FULU', data: { version: 'fulu', ...electra } })).message).toMatchObject({
      version: 'fulu',
    });
    expect(parse(aggregating({ version: 'FULU', data: { version: 'GLOAS', ...electra } }))).toEqual(
      malformed('aggregate_and_proof: version is given twice and differs'),
    );
  });

  it('of no fork, or of two shapes at once, are refused', () => {
    expect(parse(aggregating({ data: electra }))).toEqual(malformed('aggregate_and_proof.version: is missing'));
    expect(parse(aggregating({ version: 7, data: electra }))).toEqual(
      malformed('aggregate_and_proof.version: expected the name of a fork'),
    );
    expect(parse(aggregating({ version: 'FULU', data: electra, ...electra }))).toEqual(
      malformed('aggregate_and_proof: carries both data and aggregate'),
    );
  });

  it('that are malformed are told with the place in the shape that was meant', () => {
    const bad = { ...electra, aggregate: { ...electra.aggregate, data: { ...attestation, slot: 'x' } } };
    const problem = 'expected a slot or epoch of at most 2^53 - 1, as a decimal string or an integer';
    expect(parse(aggregating(bad))).toEqual(malformed(`aggregate_and_proof.aggregate.data.slot: ${problem}`));
    expect(parse(aggregating({ version: 'ELECTRA', data: bad }))).toEqual(
      malformed(`aggregate_and_proof.data.aggregate.data.slot: ${problem}`),
    );
    expect(parse({ type: 'AGGREGATE_AND_PROOF', fork_info: forkInfo })).toEqual(
      malformed('aggregate_and_proof: expected an object'),
    );
  });

  it.each([null, '0x0101', '', 1])('with committee_bits of no preset are refused: %j', (committee_bits) => {
    const body = aggregating({ ...electra, aggregate: { ...electra.aggregate, committee_bits } });
    expect(parse(body)).toEqual(
      malformed('aggregate_and_proof.aggregate.committee_bits: expected hex of 1 or 8 bytes'),
    );
  });
});

describe('aggregation bits', () => {
  const COMMITTEES = '0x0100000000000000';

  it.each([
    ['0x01', '', 0],
    ['0x03', '01', 1],
    ['0x80', '00', 7],
    ['0xff', '7f', 7],
    ['0xff01', 'ff', 8],
    ['0x0102', '0100', 9],
  ])('%s are the bits %s, %i of them', (text, bytes, length) => {
    const { message } = accepted(withBits(text));
    const bits = (message as { aggregate: { aggregation_bits: { bytes: Uint8Array; length: number } } }).aggregate;
    expect(encodeHex(bits.aggregation_bits.bytes)).toBe(`0x${bytes}`);
    expect(bits.aggregation_bits.length).toBe(length);
  });

  it.each(['0x', '', '0x00', '0x0100', '0xff00', '0x1', 'zz'])('without a length bit are refused: "%s"', (text) => {
    expect(parse(withBits(text))).toEqual(
      malformed(
        'aggregate_and_proof.aggregate.aggregation_bits: expected hex of an SSZ Bitlist of at most 131072 bits',
      ),
    );
  });

  it('are at most those of a committee before Electra, and of all committees of a slot since', () => {
    expect(parse(withBits(allBits(2048))).kind).toBe('request');
    expect(parse(withBits(`0x${'ff'.repeat(256)}02`))).toEqual(
      malformed('aggregate_and_proof.aggregate.aggregation_bits: expected at most 2048 bits before Electra'),
    );
    expect(parse(withBits(allBits(131072), COMMITTEES)).kind).toBe('request');
    expect(parse(withBits(`0x${'ff'.repeat(16384)}02`, COMMITTEES)).kind).toBe('refused');
  });

  it.each(['0x01', `0x${'01'.repeat(16)}`])('of a contribution are 8 or 128: %s', (aggregation_bits) => {
    const message = { ...contribution, contribution: { ...contribution.contribution, aggregation_bits } };
    const type = 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF';
    expect(accepted({ type, fork_info: forkInfo, contribution_and_proof: message }).operation).toBe(type);
  });

  it.each(['0x', '0x0101', `0x${'01'.repeat(17)}`])(
    'of a contribution are of no other width: %s',
    (aggregation_bits) => {
      const message = { ...contribution, contribution: { ...contribution.contribution, aggregation_bits } };
      const body = {
        type: 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
        fork_info: forkInfo,
        contribution_and_proof: message,
      };
      expect(parse(body)).toEqual(
        malformed('contribution_and_proof.contribution.aggregation_bits: expected hex of 1 or 16 bytes'),
      );
    },
  );
});

describe('blocks', () => {
  it.each(['PHASE0', 'ALTAIR', 'BELLATRIX', 'capella', 'Deneb', 'ELECTRA', 'FULU', 'GLOAS'])(
    'of %s are taken as a header',
    (version) => {
      const { message } = accepted(proposing({ version, block_header: header, block: null }));
      expect(message).toMatchObject({ slot: 1, body: { kind: 'root' } });
    },
  );

  it.each(['HEZE', 'PHASE1'])('of the unknown fork "%s" are taken as a header', (version) => {
    const { message } = accepted(proposing({ version, block_header: header }));
    expect(message).toMatchObject({ version: version.toLowerCase(), body: { kind: 'root' } });
  });

  it.each(['', 'HEZE!', 7, 'X'.repeat(65)])('of "%s", which names no fork, are refused', (version) => {
    expect(parse(proposing({ version, block_header: header }))).toMatchObject({ reason: 'malformed_body' });
  });

  it('that are neither a header nor a block are refused', () => {
    expect(parse(proposing({ version: 'DENEB' }))).toEqual(malformed('beacon_block.block_header: expected an object'));
    expect(parse(proposing({ version: 'PHASE0' }))).toEqual(malformed('beacon_block.block: expected an object'));
    expect(parse(proposing({ version: 'DENEB', block: header }))).toMatchObject({ reason: 'malformed_body' });
    expect(parse(proposing({ block_header: header }))).toEqual(malformed('beacon_block.version: is missing'));
  });

  it('that are both a header and a block are refused: nobody can tell which one is meant', () => {
    expect(parse(proposing({ version: 'PHASE0', block_header: header, block: header }))).toEqual(
      malformed('beacon_block: carries both block and block_header'),
    );
  });

  const emptyBody = {
    randao_reveal: SIGNATURE,
    eth1_data: { deposit_root: ROOT, deposit_count: '0', block_hash: ROOT },
    graffiti: ROOT,
    proposer_slashings: [],
    attester_slashings: [],
    attestations: [],
    deposits: [],
    voluntary_exits: [],
  };
  const exit = { message: { epoch: '18446744073709551615', validator_index: '1' }, signature: SIGNATURE };
  const deposit = {
    proof: Array.from({ length: 33 }, () => ROOT),
    data: { pubkey: `0x${'22'.repeat(48)}`, withdrawal_credentials: ROOT, amount: '1', signature: SIGNATURE },
  };

  it('of PHASE0 and ALTAIR are taken whole, with any uint64 inside', () => {
    const body = { ...emptyBody, voluntary_exits: [exit], deposits: [deposit] };
    expect(accepted(wholeBlock('phase0', body)).message).toMatchObject({ slot: 1, body: { kind: 'PHASE0' } });
    const sync_aggregate = { sync_committee_bits: `0x${'ff'.repeat(64)}`, sync_committee_signature: SIGNATURE };
    expect(accepted(wholeBlock('Altair', { ...body, sync_aggregate })).message).toMatchObject({
      body: { kind: 'ALTAIR' },
    });
    expect(parse(wholeBlock('ALTAIR', body))).toEqual(
      malformed('beacon_block.block.body.sync_aggregate: expected an object'),
    );
  });

  it('with lists longer or shorter than the chain allows are refused', () => {
    const place = 'beacon_block.block.body';
    expect(
      parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: Array.from({ length: 16 }, () => exit) })).kind,
    ).toBe('request');
    expect(
      parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: Array.from({ length: 17 }, () => exit) })),
    ).toEqual(malformed(`${place}.voluntary_exits: expected an array of at most 16 items`));
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, deposits: [{ ...deposit, proof: [ROOT] }] }))).toEqual(
      malformed(`${place}.deposits.0.proof: expected an array of 33 items`),
    );
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, attestations: {} }))).toEqual(
      malformed(`${place}.attestations: expected an array of at most 128 items`),
    );
  });

  it('with a bad item are refused at that item', () => {
    const bad = { ...exit, message: { ...exit.message, epoch: 'x' } };
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: [exit, bad, bad] }))).toEqual(
      malformed(
        'beacon_block.block.body.voluntary_exits.1.message.epoch: expected a uint64, as a decimal string or an integer',
      ),
    );
  });
});

describe('null in a message of Gloas', () => {
  const sepolia = publicNetwork('sepolia');
  const slot = 353_024 * sepolia.slotsPerEpoch;
  const of = (type: string) => messageAt(sepolia, type, slot, { previous: 'fulu', current: 'gloas', epoch: 353_024 });

  it.each([
    ['PAYLOAD_ATTESTATION_MESSAGE', ['payload_attestation_data', 'payload_attestation']],
    ['BUILDER_REQUEST_AUTH', ['request_auth']],
  ])('is no second name of %s', (type, names) => {
    const nulls = Object.fromEntries(names.map((name) => [name, null]));
    expect(accepted({ ...of(type), ...nulls }).message).toEqual(accepted(of(type)).message);
  });

  it('is no message', () => {
    const { payload_attestation_message: _, ...rest } = of('PAYLOAD_ATTESTATION_MESSAGE');
    expect(parse({ ...rest, payload_attestation_message: null })).toEqual(
      malformed('payload_attestation_message is missing'),
    );
  });

  it('is no version, and no gas limit', () => {
    const { proposer_preferences: preferences, ...rest } = of('PROPOSER_PREFERENCES');
    const withNulls = { ...(preferences as object), version: null, gas_limit: null };
    expect(accepted({ ...rest, proposer_preferences: withNulls }).message).toEqual(
      accepted(of('PROPOSER_PREFERENCES')).message,
    );
    expect(parse({ ...rest, proposer_preferences: { ...withNulls, target_gas_limit: null } })).toEqual(
      malformed('proposer_preferences: target_gas_limit is missing'),
    );
  });
});
