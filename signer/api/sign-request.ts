// The one parser of signing requests, for all clients (specification/signing.md#bodies), and what a parsed message says
// of its place on the chain and of its payment. A hint never names the value.

import { z } from 'zod';
import { decodeHex, encodeHex } from '../../common/formats/hex.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import {
  builderRequestAuth,
  executionPayloadBid,
  payloadAttestationData,
  proposerPreferences,
} from './messages/gloas-messages.ts';
import {
  aggregateAndProof,
  aggregationSlot,
  attestationData,
  beaconBlock,
  contributionAndProof,
  randaoReveal,
  syncAggregatorSelectionData,
  syncCommitteeMessage,
  validatorRegistration,
  voluntaryExit,
} from './messages/messages.ts';
import { executionPayloadEnvelope } from './messages/payload-envelope.ts';
import type { Operation, PaymentOperation } from './operations.ts';
import { forkVersion, readSlotOrEpoch, readUint64, refuse, root, uint64, upperCaseWord } from './primitives.ts';

/** Web3Signer's OpenAPI examples spell the versions both ways; they may not contradict each other. */
const fork = z
  .object({
    previous_version: forkVersion.optional(),
    current_version: forkVersion.optional(),
    previousVersion: forkVersion.optional(),
    currentVersion: forkVersion.optional(),
    // An epoch here is only compared and never recorded: FAR_FUTURE_EPOCH (2^64 - 1) is a fork's epoch too.
    epoch: uint64,
  })
  .transform((members, context) => ({
    previousVersion: oneVersion('previous_version', members.previous_version, members.previousVersion, context),
    currentVersion: oneVersion('current_version', members.current_version, members.currentVersion, context),
    epoch: members.epoch,
  }));

function oneVersion(
  name: string,
  version: Uint8Array | undefined,
  sameByOtherName: Uint8Array | undefined,
  context: z.RefinementCtx,
): Uint8Array {
  const found = version ?? sameByOtherName;
  if (found === undefined) return refuse(context, undefined, `${name} is missing`);
  if (version && sameByOtherName && !Buffer.from(version).equals(sameByOtherName)) {
    return refuse(context, undefined, `${name} is given twice and differs`);
  }
  return found;
}

const forkInfo = z
  .object({ fork, genesis_validators_root: root })
  .transform((info) => ({ ...info.fork, genesisValidatorsRoot: info.genesis_validators_root }));

/** A client that sends one is held to it: it names the network the client believes to be on. */
const forkInfoOrNone = forkInfo.nullish().transform((value) => value ?? undefined);

const payloadAttestation = body(
  'PAYLOAD_ATTESTATION_MESSAGE',
  ['payload_attestation_message', 'payload_attestation_data', 'payload_attestation'],
  payloadAttestationData,
);
const requestAuth = body(
  'BUILDER_REQUEST_AUTH',
  ['builder_request_auth', 'request_auth'],
  builderRequestAuth,
  forkInfoOrNone,
);

/** By `type` as it stands on the wire, standard names and those of clients. */
export const SIGN_REQUEST_SCHEMAS = {
  AGGREGATION_SLOT: body('AGGREGATION_SLOT', 'aggregation_slot', aggregationSlot),
  AGGREGATE_AND_PROOF: body('AGGREGATE_AND_PROOF', 'aggregate_and_proof', aggregateAndProof),
  AGGREGATE_AND_PROOF_V2: body('AGGREGATE_AND_PROOF', 'aggregate_and_proof', aggregateAndProof),
  ATTESTATION: body('ATTESTATION', 'attestation', attestationData),
  BLOCK_V2: body('BLOCK_V2', 'beacon_block', beaconBlock),
  RANDAO_REVEAL: body('RANDAO_REVEAL', 'randao_reveal', randaoReveal),
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: body(
    'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
    'contribution_and_proof',
    contributionAndProof,
  ),
  SYNC_COMMITTEE_MESSAGE: body('SYNC_COMMITTEE_MESSAGE', 'sync_committee_message', syncCommitteeMessage),
  SYNC_COMMITTEE_SELECTION_PROOF: body(
    'SYNC_COMMITTEE_SELECTION_PROOF',
    'sync_aggregator_selection_data',
    syncAggregatorSelectionData,
  ),
  VALIDATOR_REGISTRATION: body(
    'VALIDATOR_REGISTRATION',
    'validator_registration',
    validatorRegistration,
    forkInfoOrNone,
  ),
  VOLUNTARY_EXIT: body('VOLUNTARY_EXIT', 'voluntary_exit', voluntaryExit),
  PAYLOAD_ATTESTATION_MESSAGE: payloadAttestation,
  PAYLOAD_ATTESTATION: payloadAttestation,
  PROPOSER_PREFERENCES: body('PROPOSER_PREFERENCES', 'proposer_preferences', proposerPreferences),
  EXECUTION_PAYLOAD_ENVELOPE: body(
    'EXECUTION_PAYLOAD_ENVELOPE',
    'execution_payload_envelope',
    executionPayloadEnvelope,
  ),
  EXECUTION_PAYLOAD_BID: body('EXECUTION_PAYLOAD_BID', 'execution_payload_bid', executionPayloadBid),
  BUILDER_REQUEST_AUTH: requestAuth,
  REQUEST_AUTH: requestAuth,
} as const;

export type WireType = keyof typeof SIGN_REQUEST_SCHEMAS;

export type SignRequest = z.output<(typeof SIGN_REQUEST_SCHEMAS)[WireType]>;

export type ForkInfo = z.output<typeof forkInfo>;

export type ParsedSignRequest =
  | { readonly kind: 'request'; readonly request: SignRequest }
  | {
      readonly kind: 'refused';
      readonly reason: 'malformed_body' | 'unsupported_operation' | 'unsupported_fork';
      readonly hint: string;
    };

export function parseSignRequest(body: Uint8Array): ParsedSignRequest {
  const json = parseStrictJson(body);
  return json.kind === 'refused'
    ? { kind: 'refused', reason: 'malformed_body', hint: json.hint }
    : readSignRequest(json.value);
}

export function readSignRequest(value: unknown): ParsedSignRequest {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { kind: 'refused', reason: 'malformed_body', hint: 'the body is not a JSON object' };
  }
  const type = 'type' in value ? value.type : undefined;
  if (typeof type !== 'string') {
    return {
      kind: 'refused',
      reason: 'malformed_body',
      hint: `type: ${type === undefined ? 'is missing' : 'expected a string'}`,
    };
  }
  const name = upperCaseWord(type) ?? '';
  if (!isWireType(name)) {
    return { kind: 'refused', reason: 'unsupported_operation', hint: 'type: no operation of this signer' };
  }
  const vote = name === 'ATTESTATION' ? readPlainAttestation(value) : undefined;
  if (vote !== undefined) return { kind: 'request', request: vote };
  const result = SIGN_REQUEST_SCHEMAS[name].safeParse(value, { error: explainIssue });
  return result.success ? { kind: 'request', request: result.data } : refusalOf(result.error);
}

export function isEnvelopeRequest(value: unknown): boolean {
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
  return upperCaseWord(type) === 'EXECUTION_PAYLOAD_ENVELOPE';
}

function isWireType(name: string): name is WireType {
  return Object.hasOwn(SIGN_REQUEST_SCHEMAS, name);
}

interface Envelope {
  readonly signingRoot?: Uint8Array | null | undefined;
  readonly signing_root?: Uint8Array | null | undefined;
  readonly genesis_fork_version?: Uint8Array | null | undefined;
  readonly fork_info?: unknown;
}

function body<O extends Operation, M extends z.ZodType, F extends z.ZodType<ForkInfo | undefined> = typeof forkInfo>(
  operation: O,
  member: string | readonly [string, ...string[]],
  message: M,
  fork?: F,
) {
  const envelope = z.object({
    type: z.string().meta({ description: 'the name of the type, in any case' }),
    signingRoot: root.nullish(),
    signing_root: root.nullish(),
    /** Names the network where no genesis_validators_root does: compared, as that is. */
    genesis_fork_version: forkVersion.nullish(),
    fork_info: fork ?? forkInfo,
  });
  const names = typeof member === 'string' ? [member] : member;
  const ofMessage = names.length === 1 ? message : message.nullish();
  return envelope.extend(Object.fromEntries(names.map((name) => [name, ofMessage]))).transform((members, context) => {
    const { signingRoot, signing_root: sameByOtherName, genesis_fork_version, fork_info } = members as Envelope;
    if (signingRoot && sameByOtherName && !Buffer.from(signingRoot).equals(sameByOtherName)) {
      return refuse(context, members, 'signingRoot and signing_root differ');
    }
    const [given, another] = names.filter((name) => members[name] !== undefined && members[name] !== null);
    if (given === undefined) return refuse(context, members, `${names[0]} is missing`);
    if (another !== undefined) return refuse(context, members, `carries both ${given} and ${another}`);
    return {
      operation,
      forkInfo: fork_info as z.output<F>,
      givenSigningRoot: signingRoot ?? sameByOtherName ?? undefined,
      givenGenesisForkVersion: genesis_fork_version ?? undefined,
      message: members[given] as z.output<M>,
    };
  });
}

/** A fork we do not know explains whatever else does not fit, so it is told first. */
function refusalOf(error: z.ZodError): ParsedSignRequest {
  const unknownFork = error.issues.find(
    (issue) => issue.code === 'custom' && issue.params?.['reason'] === 'unsupported_fork',
  );
  const issue = unknownFork ?? error.issues[0];
  const place = issue?.path.join('.') ?? '';
  const problem = issue?.code === 'invalid_type' ? `expected an ${issue.expected}` : issue?.message;
  return {
    kind: 'refused',
    reason: unknownFork === undefined ? 'malformed_body' : 'unsupported_fork',
    hint: place === '' ? `${problem}` : `${place}: ${problem}`,
  };
}

// A vote read without its schema, which costs 16 µs of a request's 456 (docs/decisions/0005). What is spelled in
// another way, or is wrong, is left to the schema.
interface AttestationRequest {
  readonly operation: 'ATTESTATION';
  readonly forkInfo: {
    readonly previousVersion: Uint8Array;
    readonly currentVersion: Uint8Array;
    readonly epoch: bigint;
    readonly genesisValidatorsRoot: Uint8Array;
  };
  readonly givenSigningRoot: Uint8Array | undefined;
  readonly givenGenesisForkVersion: undefined;
  readonly message: z.output<typeof attestationData>;
}

export function readPlainAttestation(value: object): AttestationRequest | undefined {
  const { type, signingRoot, signing_root, genesis_fork_version, fork_info, attestation } = value as Members;
  if (type !== 'ATTESTATION' || signing_root !== undefined || genesis_fork_version !== undefined) return undefined;
  const forkInfo = readForkInfo(fork_info);
  const message = readVote(attestation);
  const givenSigningRoot = signingRoot === undefined ? undefined : readHex(signingRoot, 32);
  const isRead =
    forkInfo !== undefined && message !== undefined && (signingRoot === undefined) === (givenSigningRoot === undefined);
  if (!isRead) return undefined;
  return { operation: 'ATTESTATION', forkInfo, givenSigningRoot, givenGenesisForkVersion: undefined, message };
}

type Members = Readonly<Record<string, unknown>>;

function readForkInfo(value: unknown): AttestationRequest['forkInfo'] | undefined {
  const { fork, genesis_validators_root } = membersOf(value);
  const { previous_version, current_version, previousVersion, currentVersion, epoch } = membersOf(fork);
  if (previousVersion !== undefined || currentVersion !== undefined) return undefined;
  const info = {
    previousVersion: readHex(previous_version, 4),
    currentVersion: readHex(current_version, 4),
    epoch: readUint64(epoch),
    genesisValidatorsRoot: readHex(genesis_validators_root, 32),
  };
  return isComplete(info) ? info : undefined;
}

function readVote(value: unknown): AttestationRequest['message'] | undefined {
  const { slot, index, beacon_block_root, source, target } = membersOf(value);
  const vote = {
    slot: readSlotOrEpoch(slot),
    index: readUint64(index),
    beacon_block_root: readHex(beacon_block_root, 32),
    source: readCheckpoint(source),
    target: readCheckpoint(target),
  };
  return isComplete(vote) ? vote : undefined;
}

function readCheckpoint(value: unknown): AttestationRequest['message']['source'] | undefined {
  const { epoch, root } = membersOf(value);
  const checkpoint = { epoch: readSlotOrEpoch(epoch), root: readHex(root, 32) };
  return isComplete(checkpoint) ? checkpoint : undefined;
}

function readHex(value: unknown, length: number): Uint8Array | undefined {
  return typeof value === 'string' ? decodeHex(value, length) : undefined;
}

const NO_MEMBERS: Members = Object.freeze({});

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : NO_MEMBERS;
}

type Complete<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

function isComplete<T extends object>(read: T): read is T & Complete<T> {
  for (const name in read) if (read[name] === undefined) return false;
  return true;
}

// Where on the chain a message stands, for the audit line. An operation without a slot needs a case here, or does not
// compile.

export interface Position {
  readonly slot?: number;
  readonly epoch?: number;
  readonly sourceEpoch?: number;
  readonly targetEpoch?: number;
}

export function positionOf(request: SignRequest): Position | undefined {
  switch (request.operation) {
    case 'ATTESTATION': {
      const { slot, source, target } = request.message;
      return { slot, sourceEpoch: source.epoch, targetEpoch: target.epoch };
    }
    case 'AGGREGATE_AND_PROOF':
      return { slot: request.message.aggregate.data.slot };
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
      return { slot: request.message.contribution.slot };
    case 'PROPOSER_PREFERENCES':
      return { slot: request.message.proposal_slot };
    case 'RANDAO_REVEAL':
    case 'VOLUNTARY_EXIT':
      return { epoch: request.message.epoch };
    case 'VALIDATOR_REGISTRATION':
      return undefined;
    default:
      return { slot: request.message.slot };
  }
}

// What a message says of its payment (specification/authorization.md#payments).

export interface Payment {
  readonly feeRecipient?: string;
  readonly gasLimit?: bigint;
  /** The bytes that name the builder, `0x` and lower-case hex. */
  readonly builder?: string;
  readonly builderIndex?: bigint;
}

export function paymentOf(request: SignRequest): Payment | undefined {
  switch (request.operation) {
    case 'PROPOSER_PREFERENCES':
      return paymentTo(request.message.fee_recipient, request.message.target_gas_limit);
    case 'VALIDATOR_REGISTRATION':
      return paymentTo(request.message.fee_recipient, request.message.gas_limit);
    case 'EXECUTION_PAYLOAD_ENVELOPE': {
      const { feeRecipient, gasLimit, builderIndex } = request.message;
      return { ...paymentTo(feeRecipient, gasLimit), builderIndex };
    }
    case 'BUILDER_REQUEST_AUTH':
      return { builder: encodeHex(request.message.data) };
    default:
      request.operation satisfies Exclude<Operation, PaymentOperation>;
      return undefined;
  }
}

function paymentTo(feeRecipient: Uint8Array, gasLimit: bigint): Payment {
  return { feeRecipient: encodeHex(feeRecipient), gasLimit };
}

const MAX_SHOWN_CHARACTERS = 128;

export function builderName(builder: string): string {
  const text = Buffer.from(builder.slice(2), 'hex').toString('latin1');
  const name = /^[\x21-\x7e]+$/.test(text) ? text : builder;
  return name.length > MAX_SHOWN_CHARACTERS ? `${name.slice(0, MAX_SHOWN_CHARACTERS)}…` : name;
}
