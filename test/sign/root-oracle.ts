// Signing roots a second time, written down from the SSZ and consensus specifications with nothing but node:crypto, and
// computed from the JSON text's values: what the parser and the library do is checked against neither of them.

import { createHash } from 'node:crypto';

export type Json = string | number | Json[] | { [name: string]: Json };
type Members = Record<string, Json>;

/** How one member is hashed. Containers are lists of name and rule, in the specification's order. */
type Rule = (value: Json) => Buffer;

const uint64: Rule = (value) => {
  const chunk = Buffer.alloc(32);
  chunk.writeBigUInt64LE(BigInt(value as string | number));
  return chunk;
};

const bytes: Rule = (value) => merkleize(chunksOf(hex(value)));

const container =
  (fields: readonly (readonly [string, Rule])[]): Rule =>
  (value) =>
    merkleize(fields.map(([name, rule]) => rule((value as Members)[name] as Json)));

const list =
  (item: Rule, limit: number): Rule =>
  (value) =>
    mixInLength(merkleize((value as Json[]).map(item), limit), (value as Json[]).length);

const uint64List =
  (limit: number): Rule =>
  (value) => {
    const packed = Buffer.concat((value as Json[]).map((item) => uint64(item).subarray(0, 8)));
    return mixInLength(merkleize(chunksOf(packed), limit / 4), (value as Json[]).length);
  };

const vector =
  (item: Rule): Rule =>
  (value) =>
    merkleize((value as Json[]).map(item));

const bitlist =
  (limit: number): Rule =>
  (value) => {
    const bits = [...hex(value)].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1));
    const length = bits.lastIndexOf(1);
    const packed = Buffer.alloc(Math.ceil(length / 8));
    for (const [index, bit] of bits.slice(0, length).entries()) {
      packed[index >> 3] = (packed[index >> 3] ?? 0) | (bit << (index & 7));
    }
    return mixInLength(merkleize(chunksOf(packed), limit / 256), length);
  };

const checkpoint = container([
  ['epoch', uint64],
  ['root', bytes],
]);
const attestationData = container([
  ['slot', uint64],
  ['index', uint64],
  ['beacon_block_root', bytes],
  ['source', checkpoint],
  ['target', checkpoint],
]);
const header = container([
  ['slot', uint64],
  ['proposer_index', uint64],
  ['parent_root', bytes],
  ['state_root', bytes],
  ['body_root', bytes],
]);
const exit = container([
  ['epoch', uint64],
  ['validator_index', uint64],
]);
const signed = (message: Rule): Rule =>
  container([
    ['message', message],
    ['signature', bytes],
  ]);
const attestation = container([
  ['aggregation_bits', bitlist(2048)],
  ['data', attestationData],
  ['signature', bytes],
]);
const electraAttestation = container([
  ['aggregation_bits', bitlist(131072)],
  ['data', attestationData],
  ['signature', bytes],
  ['committee_bits', bytes],
]);
const indexedAttestation = container([
  ['attesting_indices', uint64List(2048)],
  ['data', attestationData],
  ['signature', bytes],
]);
const phase0Fields: readonly (readonly [string, Rule])[] = [
  ['randao_reveal', bytes],
  [
    'eth1_data',
    container([
      ['deposit_root', bytes],
      ['deposit_count', uint64],
      ['block_hash', bytes],
    ]),
  ],
  ['graffiti', bytes],
  [
    'proposer_slashings',
    list(
      container([
        ['signed_header_1', signed(header)],
        ['signed_header_2', signed(header)],
      ]),
      16,
    ),
  ],
  [
    'attester_slashings',
    list(
      container([
        ['attestation_1', indexedAttestation],
        ['attestation_2', indexedAttestation],
      ]),
      2,
    ),
  ],
  ['attestations', list(attestation, 128)],
  [
    'deposits',
    list(
      container([
        ['proof', vector(bytes)],
        [
          'data',
          container([
            ['pubkey', bytes],
            ['withdrawal_credentials', bytes],
            ['amount', uint64],
            ['signature', bytes],
          ]),
        ],
      ]),
      16,
    ),
  ],
  ['voluntary_exits', list(signed(exit), 16)],
];
const syncAggregate = container([
  ['sync_committee_bits', bytes],
  ['sync_committee_signature', bytes],
]);
const block = (body: Rule): Rule =>
  container([
    ['slot', uint64],
    ['proposer_index', uint64],
    ['parent_root', bytes],
    ['state_root', bytes],
    ['body', body],
  ]);
const aggregateAndProof = (aggregate: Rule): Rule =>
  container([
    ['aggregator_index', uint64],
    ['aggregate', aggregate],
    ['selection_proof', bytes],
  ]);

const OBJECT_RULES: Readonly<Record<string, (members: Members) => Buffer>> = {
  AGGREGATION_SLOT: ({ aggregation_slot }) => uint64((aggregation_slot as Members)['slot'] as Json),
  AGGREGATE_AND_PROOF: ({ aggregate_and_proof }) => {
    const bare = ((aggregate_and_proof as Members)['data'] ?? aggregate_and_proof) as Members;
    const electra = 'committee_bits' in (bare['aggregate'] as Members);
    return aggregateAndProof(electra ? electraAttestation : attestation)(bare);
  },
  ATTESTATION: ({ attestation: message }) => attestationData(message as Json),
  BLOCK_V2: ({ beacon_block }) => {
    const { version, block: full, block_header } = beacon_block as Members;
    if (block_header !== undefined) return header(block_header);
    const fields = version === 'PHASE0' ? phase0Fields : [...phase0Fields, ['sync_aggregate', syncAggregate] as const];
    return block(container(fields))(full as Json);
  },
  RANDAO_REVEAL: ({ randao_reveal }) => uint64((randao_reveal as Members)['epoch'] as Json),
  VOLUNTARY_EXIT: ({ voluntary_exit }) => exit(voluntary_exit as Json),
  SYNC_COMMITTEE_MESSAGE: ({ sync_committee_message }) =>
    hex((sync_committee_message as Members)['beacon_block_root'] as Json),
  SYNC_COMMITTEE_SELECTION_PROOF: ({ sync_aggregator_selection_data }) =>
    container([
      ['slot', uint64],
      ['subcommittee_index', uint64],
    ])(sync_aggregator_selection_data as Json),
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: ({ contribution_and_proof }) =>
    container([
      ['aggregator_index', uint64],
      [
        'contribution',
        container([
          ['slot', uint64],
          ['beacon_block_root', bytes],
          ['subcommittee_index', uint64],
          ['aggregation_bits', bytes],
          ['signature', bytes],
        ]),
      ],
      ['selection_proof', bytes],
    ])(contribution_and_proof as Json),
  VALIDATOR_REGISTRATION: ({ validator_registration }) =>
    container([
      ['fee_recipient', bytes],
      ['gas_limit', uint64],
      ['timestamp', uint64],
      ['pubkey', bytes],
    ])(validator_registration as Json),
};

/** The root of the message of a request that is spelled canonically: names as they are, strings, 0x, lower case. */
export function oracleObjectRoot(body: { readonly [name: string]: Json }): Buffer {
  const type = String(body['type']).replace('AGGREGATE_AND_PROOF_V2', 'AGGREGATE_AND_PROOF');
  const rule = OBJECT_RULES[type];
  if (rule === undefined) throw new Error(`the oracle has no rule for ${type}`);
  return rule(body);
}

export function oracleSigningRoot(
  objectRoot: Buffer,
  domainType: string,
  forkVersion: Uint8Array,
  genesisValidatorsRoot: Uint8Array,
): string {
  const forkDataRoot = sha256(Buffer.concat([forkVersion, Buffer.alloc(28), genesisValidatorsRoot]));
  const domain = Buffer.concat([hex(domainType), forkDataRoot.subarray(0, 28)]);
  return `0x${sha256(Buffer.concat([objectRoot, domain])).toString('hex')}`;
}

/** SSZ merkleize: chunks padded with zero chunks to a power of two, that of `limit` when there is one. */
function merkleize(chunks: readonly Buffer[], limit = chunks.length): Buffer {
  let depth = 0;
  while (2 ** depth < limit) depth += 1;
  let layer = [...chunks];
  let zero: Buffer = Buffer.alloc(32);
  for (let level = 0; level < depth; level++) {
    if (layer.length % 2 === 1) layer.push(zero);
    layer = Array.from({ length: layer.length / 2 }, (_, pair) =>
      sha256(Buffer.concat([layer[pair * 2] as Buffer, layer[pair * 2 + 1] as Buffer])),
    );
    zero = sha256(Buffer.concat([zero, zero]));
  }
  return layer[0] ?? zero;
}

function mixInLength(root: Buffer, length: number): Buffer {
  return sha256(Buffer.concat([root, uint64(length)]));
}

function chunksOf(packed: Buffer): Buffer[] {
  const count = Math.ceil(packed.length / 32);
  const padded = Buffer.concat([packed, Buffer.alloc(count * 32 - packed.length)]);
  return Array.from({ length: count }, (_, index) => padded.subarray(index * 32, (index + 1) * 32));
}

function hex(value: Json): Buffer {
  return Buffer.from(String(value).slice(2), 'hex');
}

function sha256(data: Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}
