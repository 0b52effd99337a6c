// Decides which fork a message belongs to (specification/signing.md#fork-version): that of the version which the
// client's fork_info gives at the message's epoch. A message is refused when something contradicts this version. A
// `version` that this release does not know contradicts nothing: where it could name another container, the schedule
// has to know better.

import { FORK_NAMES, type ForkName, isForkName, type StatedFork } from '../api/forks.ts';
import { isOfMinimalSlot } from '../api/messages/messages.ts';
import { type Operation, unreachable } from '../api/operations.ts';
import type { ForkInfo, SignRequest } from '../api/sign-request.ts';
import type { Fork, Network } from './networks.ts';

interface ForkRefusal {
  readonly kind: 'refused';
  readonly reason: 'unsupported_fork' | 'fork_mismatch';
  /** For the caller. */
  readonly hint: string;
}

export function forkRefusal(request: SignRequest, network: Network): ForkRefusal | undefined {
  const stated = 'version' in request.message ? request.message.version : undefined;
  const signed = signedAt(request, network);
  if (signed === undefined) return undefined; // neither its domain nor its container has a fork
  const verdict = judgeForkVersion(network, signed.version, signed.epoch);
  if (verdict.kind === 'unknown_version') return ofUnknownVersion(request, network);
  const { name } = verdict.fork;
  if (stated !== undefined && !isForkName(stated)) {
    const refusal = ofUnknownName(request, stated, signed.epoch, network);
    if (refusal !== undefined) return refusal;
  } else if (stated !== undefined && stated !== name) {
    // A custom network whose table has some forks only cannot say that the stated one has another version.
    if (network.forks.some((fork) => fork.name === stated)) {
      return mismatch(`version: states ${upper(stated)}, but fork_info selects the fork version of ${upper(name)}`);
    }
    if (!SAME_IN_EVERY_FORK.has(request.operation)) return ofUnknownVersion(request, network);
  }
  if (verdict.kind === 'contradicts' && !isOfTestChain(network, verdict)) {
    const possible = verdict.possible.map((fork) => upper(fork.name)).join(' or ');
    const selected = `fork_info: selects the fork version of ${upper(name)}`;
    return mismatch(`${selected}, but epoch ${signed.epoch} of the message is in ${possible}`);
  }
  return containerRefusal(request, name, network);
}

/** Undefined for a message whose container no fork has changed. */
export function containerFork(request: SignRequest, network: Network): ForkName | undefined {
  const signed = signedAt(request, network);
  return signed && forkOfVersion(network, signed.version)?.name;
}

/** The epoch of a message's domain, and the fork version there; undefined where fork_info decides neither. */
export function signedAt(
  request: SignRequest,
  { slotsPerEpoch }: Pick<Network, 'slotsPerEpoch'>,
): { readonly epoch: number; readonly version: Uint8Array } | undefined {
  const atEpoch = (epoch: number, fork: ForkInfo) => ({ epoch, version: forkVersionAt(epoch, fork) });
  const atSlot = (slot: number, fork: ForkInfo) => atEpoch(Math.floor(slot / slotsPerEpoch), fork);
  switch (request.operation) {
    case 'AGGREGATE_AND_PROOF':
      return atSlot(request.message.aggregate.data.slot, request.forkInfo);
    case 'ATTESTATION':
      return atEpoch(request.message.target.epoch, request.forkInfo);
    case 'RANDAO_REVEAL':
      return atEpoch(request.message.epoch, request.forkInfo);
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
      return atSlot(request.message.contribution.slot, request.forkInfo);
    case 'PROPOSER_PREFERENCES': // often the next fork's: they are asked for in the epoch before
      return atSlot(request.message.proposal_slot, request.forkInfo);
    case 'AGGREGATION_SLOT':
    case 'BLOCK_V2':
    case 'EXECUTION_PAYLOAD_BID':
    case 'EXECUTION_PAYLOAD_ENVELOPE':
    case 'PAYLOAD_ATTESTATION_MESSAGE':
    case 'SYNC_COMMITTEE_MESSAGE':
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return atSlot(request.message.slot, request.forkInfo);
    case 'BUILDER_REQUEST_AUTH':
    case 'VALIDATOR_REGISTRATION':
    case 'VOLUNTARY_EXIT':
      return undefined;
    default:
      return unreachable(request);
  }
}

function forkVersionAt(epoch: number, fork: ForkInfo): Uint8Array {
  return epoch < fork.epoch ? fork.previousVersion : fork.currentVersion;
}

/** They are signed with a version that the network's table does not have. */
export const SAME_IN_EVERY_FORK: ReadonlySet<SignRequest['operation']> = new Set<SignRequest['operation']>([
  'AGGREGATION_SLOT',
  'ATTESTATION',
  'BLOCK_V2', // a header; of a full block the stated fork names the body's container, and its hash is in the header
  'RANDAO_REVEAL',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
]);

/** These began with Gloas, and we know no fork after it. */
export const SINCE_GLOAS: ReadonlySet<SignRequest['operation']> = new Set<SignRequest['operation']>([
  'EXECUTION_PAYLOAD_BID',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'PAYLOAD_ATTESTATION_MESSAGE',
  'PROPOSER_PREFERENCES',
]);

function ofUnknownVersion({ operation }: SignRequest, { name }: Network): ForkRefusal | undefined {
  if (SAME_IN_EVERY_FORK.has(operation)) return undefined;
  const remedy = name === 'custom' ? ' (custom_network.config_file or custom_network.fork_versions name forks)' : '';
  return unsupported(
    `fork_info: selects a fork version that is none of the network's, and ${operation} needs one${remedy}`,
  );
}

/** The container is that of the fork version, and only a schedule that leaves no other fork makes that certain. */
function ofUnknownName(
  { operation }: SignRequest,
  stated: StatedFork,
  epoch: number,
  network: Network,
): ForkRefusal | undefined {
  if (SAME_IN_EVERY_FORK.has(operation) || possibleForksAt(network, epoch).length === 1) return undefined;
  return unsupported(`version: ${upper(stated)} is no fork known here, and ${operation} needs one`);
}

function containerRefusal(request: SignRequest, fork: ForkName, { preset }: Network): ForkRefusal | undefined {
  if (SINCE_GLOAS.has(request.operation) && fork !== 'gloas') {
    return unsupported(`fork_info: selects the fork version of ${upper(fork)}, which has no ${request.operation}`);
  }
  if (request.operation !== 'AGGREGATE_AND_PROOF') return undefined;
  const { committee_bits: committees } = request.message.aggregate;
  const hasCommitteeBits = committees !== undefined;
  if (hasCommitteeBits && isOfMinimalSlot(committees) !== (preset === 'minimal')) {
    const expected = preset === 'minimal' ? '1 byte' : '8 bytes';
    return mismatch(`aggregate_and_proof.aggregate.committee_bits: of preset ${preset} they have ${expected}`);
  }
  if (hasCommitteeBits === isSince('electra', fork)) return undefined;
  const problem = hasCommitteeBits ? 'has none of these' : 'needs them';
  return mismatch(`aggregate_and_proof.aggregate.committee_bits: the fork of the message, ${upper(fork)}, ${problem}`);
}

export function isSince(first: ForkName, fork: ForkName): boolean {
  return FORK_NAMES.indexOf(fork) >= FORK_NAMES.indexOf(first);
}

/** Test chains hurry through the forks before Fulu under a public network's root, which has left them behind. */
function isOfTestChain({ name }: Network, { fork, possible }: Contradiction): boolean {
  return name !== 'custom' && possible.every((one) => one.name === 'phase0') && !isSince('fulu', fork.name);
}

function mismatch(hint: string): ForkRefusal {
  return { kind: 'refused', reason: 'fork_mismatch', hint };
}

function unsupported(hint: string): ForkRefusal {
  return { kind: 'refused', reason: 'unsupported_fork', hint };
}

function upper(fork: string): string {
  return fork.toUpperCase();
}

// Whether a request is for the network that the signer serves (specification/signing.md#networks). The client is not
// told which network is configured: both values go to the log.

interface NetworkRefusal {
  readonly kind: 'refused';
  readonly reason: 'network_mismatch';
  /** For the log. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export function networkRefusal(request: SignRequest, network: Network): NetworkRefusal | undefined {
  const { operation, givenGenesisForkVersion: genesisForkVersion, forkInfo } = request;
  const isOurs =
    (genesisForkVersion === undefined || isEqual(genesisForkVersion, network.genesisForkVersion)) &&
    (forkInfo === undefined ||
      isEqual(forkInfo.genesisValidatorsRoot, network.genesisValidatorsRoot) ||
      (WITHOUT_CHAIN.has(operation) && statesNoOther(forkInfo, network)));
  return isOurs ? undefined : refusal(request, network);
}

/** Their domain has the genesis fork version and a root of zeros (builder-specs, compute_domain). */
const WITHOUT_CHAIN: ReadonlySet<Operation> = new Set<Operation>(['BUILDER_REQUEST_AUTH', 'VALIDATOR_REGISTRATION']);

/** `ssv-signer` sends registrations with the genesis fork and a root of zeros, as their domain has them. */
function statesNoOther(
  { genesisValidatorsRoot, previousVersion, currentVersion }: NonNullable<SignRequest['forkInfo']>,
  { forks }: Network,
): boolean {
  const isOfNetwork = (version: Uint8Array) => isZero(version) || forks.some((fork) => isEqual(fork.version, version));
  return isZero(genesisValidatorsRoot) && isOfNetwork(previousVersion) && isOfNetwork(currentVersion);
}

function refusal({ forkInfo, givenGenesisForkVersion }: SignRequest, network: Network): NetworkRefusal {
  return {
    kind: 'refused',
    reason: 'network_mismatch',
    detail: {
      network: network.name,
      expected_genesis_validators_root: hex(network.genesisValidatorsRoot),
      received_genesis_validators_root: hex(forkInfo?.genesisValidatorsRoot),
      expected_genesis_fork_version: hex(network.genesisForkVersion),
      received_genesis_fork_version: hex(givenGenesisForkVersion),
      received_fork: {
        previous_version: hex(forkInfo?.previousVersion),
        current_version: hex(forkInfo?.currentVersion),
        epoch: String(forkInfo?.epoch),
      },
    },
  };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

function hex(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('hex');
}

export type ForkSchedule = Pick<Network, 'forks' | 'unknownFork'>;

/** Undefined: the network's table does not have this version, or has it for more than one fork. */
export function forkOfVersion({ forks }: ForkSchedule, version: Uint8Array): Fork | undefined {
  const named = forks.filter((fork) => Buffer.compare(fork.version, version) === 0);
  return named.length === 1 ? named[0] : undefined;
}

/** One where the schedule is known, more where a fork's epoch is not announced. None from an unknown fork on. */
export function possibleForksAt({ forks, unknownFork }: ForkSchedule, epoch: number): readonly Fork[] {
  if (unknownFork !== undefined && epoch >= unknownFork.epoch) return [];
  const latest = forks.findLastIndex(({ epoch: first }) => first !== null && first <= epoch);
  const onwards = forks.slice(Math.max(0, latest));
  const end = onwards.findIndex(({ epoch: first }) => first !== null && first > epoch);
  return end === -1 ? onwards : onwards.slice(0, end);
}

interface Contradiction {
  readonly kind: 'contradicts';
  readonly fork: Fork;
  /** Those that can be; the name of one that we do not know is as the network's file has it. */
  readonly possible: readonly { readonly name: string }[];
}

type ScheduleVerdict =
  /** The version names this fork, and the schedule has nothing against it at that epoch. */
  { readonly kind: 'agrees'; readonly fork: Fork } | Contradiction | { readonly kind: 'unknown_version' };

export function judgeForkVersion(schedule: ForkSchedule, version: Uint8Array, epoch: number): ScheduleVerdict {
  const fork = forkOfVersion(schedule, version);
  if (fork === undefined) return { kind: 'unknown_version' };
  const possible = possibleForksAt(schedule, epoch);
  if (possible.includes(fork)) return { kind: 'agrees', fork };
  const { unknownFork } = schedule;
  return { kind: 'contradicts', fork, possible: possible.length === 0 && unknownFork ? [unknownFork] : possible };
}
