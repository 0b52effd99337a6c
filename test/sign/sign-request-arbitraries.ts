// Signing requests for property tests, spelled canonically (decimal strings, 0x and lower-case hex), of every type and
// shape of specification/signing.md#bodies; and ways to spell the same request differently.

import * as fc from 'fast-check';
import type { Json } from './root-oracle.ts';

export type Body = { [name: string]: Json };

/** More than the 256 bytes of a committee, so that both containers are filled past one another's limit. */
const MAX_BITLIST_BYTES = 1000;

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const slotOrEpoch = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constant(Number.MAX_SAFE_INTEGER)).map(String);
const hex = (length: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((data) => `0x${Buffer.from(data).toString('hex')}`);
const root = hex(32);
const signature = hex(96);

/** SSZ Bitlists of up to `maxBits` bits: random bytes, then a last byte that is not zero. */
const bitlist = (maxBits: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.uint8Array({ maxLength: Math.min(maxBits / 8, MAX_BITLIST_BYTES), size: 'max' }),
      fc.integer({ min: 1, max: 255 }),
    )
    .filter(([data, last]) => data.length * 8 + Math.floor(Math.log2(last)) <= maxBits)
    .map(([data, last]) => `0x${Buffer.from([...data, last]).toString('hex')}`);

const attestationData = (slots: fc.Arbitrary<string>): fc.Arbitrary<Json> => {
  const checkpoint = fc.record({ epoch: slots, root });
  return fc.record({ slot: slots, index: uint64, beacon_block_root: root, source: checkpoint, target: checkpoint });
};

const headerFields = (slots: fc.Arbitrary<string>) => ({
  slot: slots,
  proposer_index: uint64,
  parent_root: root,
  state_root: root,
});
const header = (slots: fc.Arbitrary<string>): fc.Arbitrary<Json> =>
  fc.record({ ...headerFields(slots), body_root: root });
const signed = (message: fc.Arbitrary<Json>): fc.Arbitrary<Json> => fc.record({ message, signature });
const indexedAttestation = fc.record({
  attesting_indices: fc.array(uint64, { maxLength: 9 }),
  data: attestationData(uint64),
  signature,
});

const phase0Body = {
  randao_reveal: signature,
  eth1_data: fc.record({ deposit_root: root, deposit_count: uint64, block_hash: root }),
  graffiti: root,
  proposer_slashings: fc.array(
    fc.record({ signed_header_1: signed(header(uint64)), signed_header_2: signed(header(uint64)) }),
    { maxLength: 2 },
  ),
  attester_slashings: fc.array(fc.record({ attestation_1: indexedAttestation, attestation_2: indexedAttestation }), {
    maxLength: 2,
  }),
  attestations: fc.array(fc.record({ aggregation_bits: bitlist(2048), data: attestationData(uint64), signature }), {
    maxLength: 3,
  }),
  deposits: fc.array(
    fc.record({
      proof: fc.array(root, { minLength: 33, maxLength: 33 }),
      data: fc.record({ pubkey: hex(48), withdrawal_credentials: root, amount: uint64, signature }),
    }),
    { maxLength: 1 },
  ),
  voluntary_exits: fc.array(signed(fc.record({ epoch: uint64, validator_index: uint64 })), { maxLength: 2 }),
};
const altairBody = {
  ...phase0Body,
  sync_aggregate: fc.record({
    sync_committee_bits: fc.oneof(hex(4), hex(64)),
    sync_committee_signature: signature,
  }),
};
const fullBlock = (version: string, body: Record<string, fc.Arbitrary<Json>>): fc.Arbitrary<Json> =>
  fc.record({
    version: fc.constant(version),
    block: fc.record({ ...headerFields(slotOrEpoch), body: fc.record(body) }),
  });

const beaconBlock = fc.oneof(
  { arbitrary: fullBlock('PHASE0', phase0Body), weight: 1 },
  { arbitrary: fullBlock('ALTAIR', altairBody), weight: 1 },
  {
    arbitrary: fc.record({
      version: fc.constantFrom('PHASE0', 'ALTAIR', 'BELLATRIX', 'CAPELLA', 'DENEB', 'ELECTRA', 'FULU', 'GLOAS'),
      block_header: header(slotOrEpoch),
    }),
    weight: 3,
  },
);

const aggregateOf = (aggregate: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.record({ aggregator_index: uint64, aggregate, selection_proof: signature });
const bareAggregates = {
  phase0: aggregateOf(fc.record({ aggregation_bits: bitlist(2048), data: attestationData(slotOrEpoch), signature })),
  electra: aggregateOf(
    fc.record({
      aggregation_bits: bitlist(131072),
      data: attestationData(slotOrEpoch),
      signature,
      committee_bits: hex(8),
    }),
  ),
};
/** Hoodi's versions, and which container of an aggregate each has. */
const AGGREGATE_FORKS = [
  ['PHASE0', '0x10000910', 'phase0'],
  ['DENEB', '0x50000910', 'phase0'],
  ['ELECTRA', '0x60000910', 'electra'],
  ['FULU', '0x70000910', 'electra'],
] as const;

/** Their fork version names their container, so it is one of the network's. */
const aggregateBody = (type: string): fc.Arbitrary<Body> =>
  fc.constantFrom(...AGGREGATE_FORKS).chain(([version, forkVersion, container]) => {
    const bare = bareAggregates[container];
    return fc.record({
      type: fc.constant(type),
      fork_info: forkInfoWith(fc.constant(forkVersion)),
      aggregate_and_proof: fc.oneof(bare, fc.record({ version: fc.constant(version), data: bare })),
    });
  });

function forkInfoWith(version: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc.record({
    fork: fc.record({ previous_version: version, current_version: version, epoch: fc.oneof(slotOrEpoch, uint64) }),
    genesis_validators_root: root,
  });
}
const forkInfo = forkInfoWith(hex(4));

const MESSAGES: readonly (readonly [string, string, fc.Arbitrary<Json>])[] = [
  ['AGGREGATION_SLOT', 'aggregation_slot', fc.record({ slot: slotOrEpoch })],
  ['ATTESTATION', 'attestation', attestationData(slotOrEpoch)],
  ['BLOCK_V2', 'beacon_block', beaconBlock],
  ['RANDAO_REVEAL', 'randao_reveal', fc.record({ epoch: slotOrEpoch })],
  ['VOLUNTARY_EXIT', 'voluntary_exit', fc.record({ epoch: slotOrEpoch, validator_index: uint64 })],
  ['SYNC_COMMITTEE_MESSAGE', 'sync_committee_message', fc.record({ beacon_block_root: root, slot: slotOrEpoch })],
  [
    'SYNC_COMMITTEE_SELECTION_PROOF',
    'sync_aggregator_selection_data',
    fc.record({ slot: slotOrEpoch, subcommittee_index: uint64 }),
  ],
  [
    'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
    'contribution_and_proof',
    fc.record({
      aggregator_index: uint64,
      selection_proof: signature,
      contribution: fc.record({
        slot: slotOrEpoch,
        beacon_block_root: root,
        subcommittee_index: uint64,
        aggregation_bits: fc.oneof(hex(1), hex(16)),
        signature,
      }),
    }),
  ],
  [
    'VALIDATOR_REGISTRATION',
    'validator_registration',
    fc.record({ fee_recipient: hex(20), gas_limit: uint64, timestamp: uint64, pubkey: hex(48) }),
  ],
];

/** The member that carries the message of a type. */
export const MESSAGE_MEMBERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(MESSAGES.map(([type, member]) => [type, member])),
  AGGREGATE_AND_PROOF: 'aggregate_and_proof',
  AGGREGATE_AND_PROOF_V2: 'aggregate_and_proof',
};

export const signRequestBody: fc.Arbitrary<Body> = fc.oneof(
  aggregateBody('AGGREGATE_AND_PROOF'),
  aggregateBody('AGGREGATE_AND_PROOF_V2'),
  ...MESSAGES.map(([type, member, message]) =>
    fc.record({ type: fc.constant(type), fork_info: forkInfo, [member]: message }),
  ),
);

/** The same request, spelled in any way that specification/signing.md#bodies allows. */
export function respelled(body: Body): fc.Arbitrary<Body> {
  return fc.infiniteStream(fc.nat(255)).map((choices) => {
    const choose = (count: number): number => (choices.next().value as number) % count;
    return respell(body, choose) as Body;
  });
}

function respell(value: Json, choose: (count: number) => number): Json {
  if (typeof value === 'string') return respellText(value, choose);
  if (Array.isArray(value)) return value.map((item) => respell(item, choose));
  if (typeof value !== 'object') return value;
  const members = Object.entries(value).map(([name, item]) => [name, respell(item, choose)] as const);
  if (choose(2) === 0) members.push(['zz_unknown', { slot: '1', root: [1.5e300, -1], '': 'x' }]);
  if (choose(3) === 0) members.reverse();
  if (choose(3) === 0) members.push(members.shift() as (typeof members)[number]);
  return Object.fromEntries(members);
}

function respellText(text: string, choose: (count: number) => number): Json {
  if (/^[0-9]+$/.test(text)) return Number.isSafeInteger(Number(text)) && choose(2) === 0 ? Number(text) : text;
  if (text.startsWith('0x')) {
    const digits = choose(2) === 0 ? text.slice(2).toUpperCase() : text.slice(2);
    return `${['0x', '', '0X'][choose(3)]}${digits}`;
  }
  return [text, text.toLowerCase(), text.slice(0, 1) + text.slice(1).toLowerCase()][choose(3)] as string;
}
