// From a typed request to the 32 bytes that are signed: its network, its fork, its domain and its root. The fork is
// that of the version that the client's fork_info gives at the message's epoch (specification/signing.md#fork-version).
// A message is refused when something contradicts this version. A `version` that this release does not know
// contradicts nothing: where it could name another container, the schedule has to know better.

import { hashInto } from '@chainsafe/persistent-merkle-tree';
import { FORK_NAMES, isForkName, type StatedFork } from '../api/forks.ts';
import { ForkData } from '../operations/containers.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import type { Fork, Network } from './networks.ts';

/** The fork to sign with. sign.ts resolves it and hands it on. */
export interface MessageFork {
  /** Of the message's domain. Undefined: the operation has one version, whatever the client's fork_info says. */
  readonly epoch: number | undefined;
  /** 4 bytes. */
  readonly version: Uint8Array;
  /** The fork that the version names, and that has the container. Undefined: the network's table has no such one. */
  readonly container: Fork | undefined;
}

export function messageFork({ operation, message, forkInfo }: SignRequest, network: Network): MessageFork {
  const row: OperationRow = ROWS[operation];
  if (row.fork === 'capella') return { epoch: undefined, version: network.capellaForkVersion, container: undefined };
  if (row.fork === 'genesis') return { epoch: undefined, version: network.genesisForkVersion, container: undefined };
  const place = row.place?.(message);
  if (place === undefined || forkInfo === undefined) throw new Error(`${operation} needs a place and a fork_info`);
  const { slot = 0, targetEpoch, epoch = targetEpoch ?? Math.floor(slot / network.slotsPerEpoch) } = place;
  const version = epoch < forkInfo.epoch ? forkInfo.previousVersion : forkInfo.currentVersion;
  return { epoch, version, container: forkOfVersion(network, version) };
}

interface ForkRefusal {
  readonly kind: 'refused';
  readonly reason: 'unsupported_fork' | 'fork_mismatch';
  /** For the caller. */
  readonly hint: string;
}

export function forkRefusal(
  request: SignRequest,
  network: Network,
  { epoch, container }: MessageFork = messageFork(request, network),
): ForkRefusal | undefined {
  if (epoch === undefined) return undefined; // neither its domain nor its container has a fork
  if (container === undefined) return ofUnknownVersion(request, network);
  const stated = 'version' in request.message ? request.message.version : undefined;
  const { name } = container;
  if (stated !== undefined && !isForkName(stated)) {
    const refusal = ofUnknownName(request, stated, epoch, network);
    if (refusal !== undefined) return refusal;
  } else if (stated !== undefined && stated !== name) {
    // A custom network whose table has some forks only cannot say that the stated one has another version.
    if (network.forks.some((fork) => fork.name === stated)) {
      return mismatch(`version: states ${upper(stated)}, but fork_info selects the fork version of ${upper(name)}`);
    }
    const refusal = ofUnknownVersion(request, network);
    if (refusal !== undefined) return refusal;
  }
  const others = contradictedBy(network, container, epoch);
  if (others !== undefined && !isOfTestChain(network, container, others)) {
    const possible = others.map((fork) => upper(fork.name)).join(' or ');
    const selected = `fork_info: selects the fork version of ${upper(name)}`;
    return mismatch(`${selected}, but epoch ${epoch} of the message is in ${possible}`);
  }
  return containerRefusal(request, container, network);
}

function ofUnknownVersion({ operation }: SignRequest, { name }: Network): ForkRefusal | undefined {
  if (ROWS[operation].fork === 'any') return undefined;
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
  if (ROWS[operation].fork === 'any' || possibleForksAt(network, epoch).length === 1) return undefined;
  return unsupported(`version: ${upper(stated)} is no fork known here, and ${operation} needs one`);
}

function containerRefusal(
  { operation, message }: SignRequest,
  { name }: Fork,
  { preset }: Network,
): ForkRefusal | undefined {
  const row: OperationRow = ROWS[operation];
  if (row.fork === 'gloas' && name !== 'gloas') {
    return unsupported(`fork_info: selects the fork version of ${upper(name)}, which has no ${operation}`);
  }
  const contradiction = row.contradiction?.(message, name, preset);
  return contradiction === undefined ? undefined : mismatch(contradiction);
}

type Named = { readonly name: string };

/** Test chains hurry through the forks before Fulu under a public network's root, which has left them behind. */
function isOfTestChain({ name }: Network, fork: Fork, possible: readonly Named[]): boolean {
  const isBeforeFulu = FORK_NAMES.indexOf(fork.name) < FORK_NAMES.indexOf('fulu');
  return name !== 'custom' && possible.every((one) => one.name === 'phase0') && isBeforeFulu;
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
      (ROWS[operation].fork === 'genesis' && statesNoOther(forkInfo, network)));
  return isOurs ? undefined : refusal(request, network);
}

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

/**
 * The forks that the schedule has at that epoch, when this fork is not one of them. A fork that we do not know is named
 * as in the network's file.
 */
export function contradictedBy(schedule: ForkSchedule, fork: Fork, epoch: number): readonly Named[] | undefined {
  const possible = possibleForksAt(schedule, epoch);
  if (possible.includes(fork)) return undefined;
  return possible.length === 0 && schedule.unknownFork ? [schedule.unknownFork] : possible;
}

// The 32 bytes to sign, of a message and its fork.

const ROOT_BYTES = 32;
const ZERO_ROOT = new Uint8Array(ROOT_BYTES);

/** Overwritten by each call: nothing here is secret. */
const signingData = new Uint8Array(2 * ROOT_BYTES);

/** consensus-specs, compute_signing_root: hash_tree_root of SigningData, in place. */
export function signingRoot(objectRoot: Uint8Array, domain: Uint8Array): Uint8Array {
  signingData.set(objectRoot);
  signingData.set(domain, ROOT_BYTES);
  const root = new Uint8Array(ROOT_BYTES);
  hashInto(signingData, root);
  return root;
}

/** @param fork one that forkRefusal has nothing against on this network */
export function computeSigningRoot(
  request: SignRequest,
  network: Network,
  fork: MessageFork = messageFork(request, network),
  domains: ComputeDomain = computeDomain,
): Uint8Array {
  const row: OperationRow = ROWS[request.operation];
  const chain = row.fork === 'genesis' ? ZERO_ROOT : network.genesisValidatorsRoot;
  const domain = domains(row.domain, fork.version, chain);
  return signingRoot(row.root(request.message, fork.container?.name), domain);
}

export type ComputeRoot = (request: SignRequest, fork?: MessageFork) => Uint8Array;

/** For all requests of one network, whose domains it remembers. */
export function signingRoots(network: Network): ComputeRoot {
  const domains = rememberedDomains();
  return (request, fork) => computeSigningRoot(request, network, fork, domains);
}

// consensus-specs, compute_domain and get_domain; specification/signing.md#bodies.

const FORK_DATA_ROOT_BYTES = 28;

export function computeDomain(type: number, forkVersion: Uint8Array, genesisValidatorsRoot: Uint8Array): Uint8Array {
  const forkDataRoot = ForkData.hashTreeRoot({
    current_version: forkVersion,
    genesis_validators_root: genesisValidatorsRoot,
  });
  const domain = new Uint8Array(4 + FORK_DATA_ROOT_BYTES);
  new DataView(domain.buffer).setUint32(0, type);
  domain.set(forkDataRoot.subarray(0, FORK_DATA_ROOT_BYTES), 4);
  return domain;
}

type ComputeDomain = typeof computeDomain;

/** One network and one fork make nearly all requests. What is given back is shared and not to be written to. */
export function rememberedDomains(): ComputeDomain {
  const last = new Map<number, { forkVersion: Uint8Array; genesisValidatorsRoot: Uint8Array; domain: Uint8Array }>();
  return (type, forkVersion, genesisValidatorsRoot) => {
    const known = last.get(type);
    if (
      known !== undefined &&
      Buffer.compare(known.forkVersion, forkVersion) === 0 &&
      Buffer.compare(known.genesisValidatorsRoot, genesisValidatorsRoot) === 0
    ) {
      return known.domain;
    }
    const domain = computeDomain(type, forkVersion, genesisValidatorsRoot);
    // Copies: the version came out of a request's body, and a view into it would keep all of that.
    last.set(type, {
      forkVersion: Uint8Array.from(forkVersion),
      genesisValidatorsRoot: Uint8Array.from(genesisValidatorsRoot),
      domain,
    });
    return domain;
  };
}
