// The consensus messages as they stand in a signing request (specification/signing.md#bodies).

import { z } from 'zod';
import { anyStatedFork, isForkName, type StatedFork, statedFork } from '../../api/forks.ts';
import {
  bitlist,
  bytes,
  delegate,
  inputJsonSchema,
  refuseValue,
  root,
  signature,
  slotOrEpoch,
  uint64,
  upperCaseWord,
} from '../../api/primitives.ts';
import * as parts from '../described.ts';
import { AltairBody, MAX_VALIDATORS_PER_COMMITTEE, Phase0Body, SYNC_COMMITTEE_BYTES } from './block-body.ts';

/** MAX_VALIDATORS_PER_COMMITTEE * MAX_COMMITTEES_PER_SLOT: one Electra aggregate spans every committee of a slot. */
export const MAX_VALIDATORS_PER_SLOT = 131_072;
export const MAX_VALIDATORS_PER_MINIMAL_SLOT = 8192;

/** The bytes of `committee_bits`: 4 committees in the minimal preset, 64 in the others. */
export const COMMITTEE_BYTES = { minimal: 1, mainnet: 8 } as const;

const checkpoint = z.object({ epoch: slotOrEpoch, root });

export const attestationData = z.object({
  slot: slotOrEpoch,
  index: uint64,
  beacon_block_root: root,
  source: checkpoint,
  target: checkpoint,
});

export const aggregationSlot = z.object({ slot: slotOrEpoch });

export const randaoReveal = z.object({ epoch: slotOrEpoch });

export const VoluntaryExit = parts.container({ epoch: parts.slotOrEpoch, validator_index: parts.uint64 });

export const syncCommitteeMessage = z.object({ beacon_block_root: root, slot: slotOrEpoch });

export const SyncAggregatorSelectionData = parts.container({
  slot: parts.slotOrEpoch,
  subcommittee_index: parts.uint64,
});

export const contributionAndProof = z.object({
  aggregator_index: uint64,
  selection_proof: signature,
  contribution: z.object({
    slot: slotOrEpoch,
    beacon_block_root: root,
    subcommittee_index: uint64,
    /** A quarter of a sync committee: 8 bits in the minimal preset, 128 in mainnet's. */
    aggregation_bits: bytes(SYNC_COMMITTEE_BYTES.minimal / 4, SYNC_COMMITTEE_BYTES.mainnet / 4),
    signature,
  }),
});

export const ValidatorRegistration = parts.container({
  fee_recipient: parts.address,
  gas_limit: parts.uint64,
  timestamp: parts.uint64,
  pubkey: parts.publicKey,
});

export function isOfMinimalSlot(committeeBits: Uint8Array | undefined): boolean {
  return committeeBits?.length === COMMITTEE_BYTES.minimal;
}

/** Both wire types take both shapes. Which container it is follows from the fork version (sign/message-root.ts). */
export const aggregateAndProof = bareOrVersioned(
  {
    aggregator_index: uint64,
    aggregate: z
      .object({
        aggregation_bits: bitlist(MAX_VALIDATORS_PER_SLOT),
        data: attestationData,
        signature,
        committee_bits: bytes(COMMITTEE_BYTES.minimal, COMMITTEE_BYTES.mainnet).optional(),
      })
      .refine(
        (aggregate) =>
          aggregate.committee_bits !== undefined || aggregate.aggregation_bits.length <= MAX_VALIDATORS_PER_COMMITTEE,
        { path: ['aggregation_bits'], message: `expected at most ${MAX_VALIDATORS_PER_COMMITTEE} bits before Electra` },
      )
      .refine(
        ({ committee_bits: committees, aggregation_bits: { length } }) =>
          !isOfMinimalSlot(committees) || length <= MAX_VALIDATORS_PER_MINIMAL_SLOT,
        {
          path: ['aggregation_bits'],
          message: `expected at most ${MAX_VALIDATORS_PER_MINIMAL_SLOT} bits of 4 committees`,
        },
      )
      .refine(({ committee_bits: committees }) => !isOfMinimalSlot(committees) || (committees?.[0] ?? 0) < 16, {
        path: ['committee_bits'],
        message: 'expected 4 bits',
      }),
    selection_proof: signature,
  },
  'aggregate',
);

const blockFields = { slot: slotOrEpoch, proposer_index: uint64, parent_root: root, state_root: root };

/** A header has had the same five members since PHASE0: it commits to the body by its root. */
const headerBlock = z
  .object({ version: anyStatedFork, block_header: z.object({ ...blockFields, body_root: root }) })
  .transform(({ version, block_header: { body_root, ...fields } }) => ({
    ...fields,
    version,
    body: { kind: 'root', root: body_root } as const,
  }));

const phase0Block = z
  .object({ version: statedFork('phase0'), block: z.object({ ...blockFields, body: Phase0Body.schema }) })
  .transform(({ version, block: { body, ...fields } }) => ({
    ...fields,
    version,
    body: { kind: 'PHASE0', content: body } as const,
  }));

const altairBlock = z
  .object({ version: statedFork('altair'), block: z.object({ ...blockFields, body: AltairBody.schema }) })
  .transform(({ version, block: { body, ...fields } }) => ({
    ...fields,
    version,
    body: { kind: 'ALTAIR', content: body } as const,
  }));

export const beaconBlock = oneShape([headerBlock, phase0Block, altairBlock], (members) => {
  const hasHeader = (members['block_header'] ?? null) !== null;
  if (hasHeader) return (members['block'] ?? null) === null ? headerBlock : 'carries both block and block_header';
  const version = upperCaseWord(members['version']);
  if (version === 'PHASE0') return phase0Block;
  return version === 'ALTAIR' ? altairBlock : headerBlock;
});

export type BeaconBlock = z.output<typeof beaconBlock>;
export type AggregateAndProof = z.output<typeof aggregateAndProof>;
export type ContributionAndProof = z.output<typeof contributionAndProof>;

/** Decided before anything is parsed: a body that fits one shape badly is never taken for another. */
function oneShape<T extends readonly [z.ZodType, ...z.ZodType[]]>(
  shapes: T,
  choose: (members: Readonly<Record<string, unknown>>) => T[number] | string,
) {
  return z
    .unknown()
    .transform((value, context): z.output<T[number]> => {
      if (typeof value !== 'object' || value === null) return refuseValue(context, value, 'expected an object');
      const shape = choose(value as Record<string, unknown>);
      if (typeof shape === 'string') return refuseValue(context, value, shape);
      const message = delegate(shape, value, context);
      if (context.issues.length > 0 && statesUnknownFork(value)) {
        // A fork that we do not know explains whatever else does not fit, so it is told.
        const reason = { params: { reason: 'unsupported_fork' }, path: ['version'] };
        context.issues.push({ code: 'custom', message: 'no fork known here', input: value, ...reason });
      }
      return message;
    })
    .meta(inputJsonSchema(z.union(shapes)));
}

function statesUnknownFork(value: object): boolean {
  const stated = 'version' in value ? upperCaseWord(value.version)?.toLowerCase() : undefined;
  return stated !== undefined && !isForkName(stated);
}

type Stated<Message> = Message & { readonly version?: StatedFork | undefined };

/** @param marker a member of the bare message that the versioned one does not have */
export function bareOrVersioned<Fields extends z.ZodRawShape>(fields: Fields, marker: string) {
  type Message = Stated<z.output<z.ZodObject<Fields>>>;
  const version = anyStatedFork.nullish().transform((stated) => stated ?? undefined);
  const bare = z.object({ ...fields, version }) as unknown as z.ZodType<Message>;
  const versioned = z
    .object({ version: anyStatedFork, data: bare })
    .transform(
      ({ version, data }, context): Message =>
        data.version === undefined || data.version === version
          ? { ...data, version }
          : refuseValue(context, undefined, 'version is given twice and differs'),
    );
  return oneShape([versioned, bare], ({ data, ...others }) => {
    // A message may have a member `data` of its own (builder_request_auth), which is text.
    if (typeof data !== 'object' || data === null) return marker in others || data === undefined ? bare : versioned;
    return marker in others ? `carries both data and ${marker}` : versioned;
  });
}
