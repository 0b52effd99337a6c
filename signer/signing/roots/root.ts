// The 32 bytes to sign, from a typed request, and the facts that slashing protection needs.

import { hashInto } from '@chainsafe/persistent-merkle-tree';
import { type Operation, unreachable } from '../../api/operations.ts';
import { type ParsedSignRequest, parseSignRequest, type SignRequest } from '../../api/sign-request.ts';
import type { LoadedKey } from '../../keys/loaded-key.ts';
import type { SlashableMessage } from '../../slashing/types.ts';
import { containerFork, signedAt } from '../message-fork.ts';
import type { Network } from '../networks.ts';
import { ForkData, SigningData } from './containers.ts';
import { objectRoot } from './object-root.ts';

// consensus-specs, compute_domain and get_domain; specification/signing.md#bodies.

export const DOMAIN_TYPES = {
  BEACON_PROPOSER: 0x00000000,
  BEACON_ATTESTER: 0x01000000,
  RANDAO: 0x02000000,
  VOLUNTARY_EXIT: 0x04000000,
  SELECTION_PROOF: 0x05000000,
  AGGREGATE_AND_PROOF: 0x06000000,
  SYNC_COMMITTEE: 0x07000000,
  SYNC_COMMITTEE_SELECTION_PROOF: 0x08000000,
  CONTRIBUTION_AND_PROOF: 0x09000000,
  BEACON_BUILDER: 0x0b000000,
  PTC_ATTESTER: 0x0c000000,
  PROPOSER_PREFERENCES: 0x0d000000,
  APPLICATION_BUILDER: 0x00000001,
  BUILDER_REQUEST_AUTH: 0x0b000001,
} as const;

type DomainType = (typeof DOMAIN_TYPES)[keyof typeof DOMAIN_TYPES];

const FORK_DATA_ROOT_BYTES = 28;

export function computeDomain(
  type: DomainType,
  forkVersion: Uint8Array,
  genesisValidatorsRoot: Uint8Array,
): Uint8Array {
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
  const last = new Map<
    DomainType,
    { forkVersion: Uint8Array; genesisValidatorsRoot: Uint8Array; domain: Uint8Array }
  >();
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

const ZERO_ROOT = new Uint8Array(32);

/** consensus-specs, compute_signing_root. @param request one that forkRefusal has nothing against on this network */
export function computeSigningRoot(
  request: SignRequest,
  network: Network,
  domains: ComputeDomain = computeDomain,
): Uint8Array {
  const domain = domainOf(request, network, domains);
  if (request.operation === 'ATTESTATION') return attestationSigningRoot(request.message, domain);
  return SigningData.hashTreeRoot({ object_root: objectRoot(request, containerFork(request, network)), domain });
}

export function envelopeBlockSigningRoot(
  request: Extract<SignRequest, { operation: 'EXECUTION_PAYLOAD_ENVELOPE' }>,
  network: Network,
): Uint8Array {
  const signed = signedAt(request, network);
  if (signed === undefined) throw new Error('an envelope has a fork version');
  const domain = computeDomain(DOMAIN_TYPES.BEACON_PROPOSER, signed.version, network.genesisValidatorsRoot);
  return SigningData.hashTreeRoot({ object_root: request.message.beaconBlockRoot, domain });
}

export function slashableMessage(
  request: SignRequest,
  { publicKey, tenure }: Pick<LoadedKey, 'publicKey' | 'tenure'>,
  signingRoot: Uint8Array,
): SlashableMessage | null {
  switch (request.operation) {
    case 'BLOCK_V2':
      return { kind: 'block', publicKey, tenure, slot: request.message.slot, signingRoot };
    case 'ATTESTATION': {
      const { source, target } = request.message;
      const epochs = { sourceEpoch: source.epoch, targetEpoch: target.epoch };
      return { kind: 'attestation', publicKey, tenure, ...epochs, signingRoot };
    }
    case 'AGGREGATION_SLOT':
    case 'AGGREGATE_AND_PROOF':
    case 'BUILDER_REQUEST_AUTH':
    case 'EXECUTION_PAYLOAD_BID':
    case 'EXECUTION_PAYLOAD_ENVELOPE':
    case 'PAYLOAD_ATTESTATION_MESSAGE':
    case 'PROPOSER_PREFERENCES':
    case 'RANDAO_REVEAL':
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
    case 'SYNC_COMMITTEE_MESSAGE':
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
    case 'VALIDATOR_REGISTRATION':
    case 'VOLUNTARY_EXIT':
      return null;
    default:
      return unreachable(request);
  }
}

/** specification/signing.md#bodies: the columns with the domains. */
const DOMAIN_OF: Readonly<Record<Operation, DomainType>> = {
  AGGREGATION_SLOT: DOMAIN_TYPES.SELECTION_PROOF,
  AGGREGATE_AND_PROOF: DOMAIN_TYPES.AGGREGATE_AND_PROOF,
  ATTESTATION: DOMAIN_TYPES.BEACON_ATTESTER,
  BLOCK_V2: DOMAIN_TYPES.BEACON_PROPOSER,
  BUILDER_REQUEST_AUTH: DOMAIN_TYPES.BUILDER_REQUEST_AUTH,
  EXECUTION_PAYLOAD_BID: DOMAIN_TYPES.BEACON_BUILDER,
  EXECUTION_PAYLOAD_ENVELOPE: DOMAIN_TYPES.BEACON_BUILDER,
  PAYLOAD_ATTESTATION_MESSAGE: DOMAIN_TYPES.PTC_ATTESTER,
  PROPOSER_PREFERENCES: DOMAIN_TYPES.PROPOSER_PREFERENCES,
  RANDAO_REVEAL: DOMAIN_TYPES.RANDAO,
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: DOMAIN_TYPES.CONTRIBUTION_AND_PROOF,
  SYNC_COMMITTEE_MESSAGE: DOMAIN_TYPES.SYNC_COMMITTEE,
  SYNC_COMMITTEE_SELECTION_PROOF: DOMAIN_TYPES.SYNC_COMMITTEE_SELECTION_PROOF,
  VALIDATOR_REGISTRATION: DOMAIN_TYPES.APPLICATION_BUILDER,
  VOLUNTARY_EXIT: DOMAIN_TYPES.VOLUNTARY_EXIT,
};

function domainOf(request: SignRequest, network: Network, domains: ComputeDomain): Uint8Array {
  const type = DOMAIN_OF[request.operation];
  const { genesisValidatorsRoot, genesisForkVersion, capellaForkVersion } = network;
  switch (request.operation) {
    case 'VOLUNTARY_EXIT': // EIP-7044: valid for ever under Capella's version, whatever fork the client sent.
      return domains(type, capellaForkVersion, genesisValidatorsRoot);
    case 'BUILDER_REQUEST_AUTH':
    case 'VALIDATOR_REGISTRATION': // builder-specs: no fork and no chain but the genesis fork version.
      return domains(type, genesisForkVersion, ZERO_ROOT);
    default: {
      const signed = signedAt(request, network);
      if (signed === undefined) throw new Error(`no fork version for this operation: ${request.operation}`);
      return domains(type, signed.version, genesisValidatorsRoot);
    }
  }
}

// The signing root of a vote, computed in place: votes are most of what a validator signs, and the SSZ library takes
// three times as long.

type Attestation = Extract<SignRequest, { operation: 'ATTESTATION' }>['message'];

const CHUNK = 32;
/** slot, index, beacon_block_root, source, target, and three of zeros: a tree has a power of two. */
const LEAVES = 8;
const [SLOT, INDEX, BLOCK_ROOT, SOURCE] = [0, CHUNK, 2 * CHUNK, 3 * CHUNK];
const [EPOCH, ROOT] = [0, CHUNK];

/** Overwritten by each call, which is over before the next: nothing here is secret. */
const checkpoints = new Uint8Array(4 * CHUNK);
const leaves = new Uint8Array(LEAVES * CHUNK);
const quarters = new Uint8Array(4 * CHUNK);
const halves = new Uint8Array(2 * CHUNK);
const signingData = new Uint8Array(2 * CHUNK);

const checkpointNumbers = new DataView(checkpoints.buffer);
const leafNumbers = new DataView(leaves.buffer);
const checkpointRoots = leaves.subarray(SOURCE, SOURCE + 2 * CHUNK);
const dataRoot = signingData.subarray(0, CHUNK);

export function attestationSigningRoot(vote: Attestation, domain: Uint8Array): Uint8Array {
  writeCheckpoint(vote.source, 0);
  writeCheckpoint(vote.target, 2 * CHUNK);
  hashInto(checkpoints, checkpointRoots);

  writeUint64(leafNumbers, SLOT, vote.slot);
  leafNumbers.setBigUint64(INDEX, vote.index, true);
  leaves.set(vote.beacon_block_root, BLOCK_ROOT);
  hashInto(leaves, quarters);
  hashInto(quarters, halves);
  hashInto(halves, dataRoot);

  signingData.set(domain, CHUNK);
  const root = new Uint8Array(CHUNK);
  hashInto(signingData, root);
  return root;
}

function writeCheckpoint({ epoch, root }: Attestation['source'], at: number): void {
  writeUint64(checkpointNumbers, at + EPOCH, epoch);
  checkpoints.set(root, at + ROOT);
}

function writeUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}

// The attesters of a slot that agree send the same bytes, each for their own key: these are parsed and hashed once.

export const MAX_REMEMBERED_BODIES = 128;
export const MAX_REMEMBERED_BODY_BYTES = 2048;

const DIGEST_STEP = 3;
const DIGEST_FACTOR = 0x01000193;

export type ComputeRoot = (request: SignRequest) => Uint8Array;

/** What both give back is shared: nobody writes to it. */
interface RememberedRequests {
  readonly parse: (body: Uint8Array) => ParsedSignRequest;
  readonly rootOf: ComputeRoot;
}

export function rememberedRequests(network: Network): RememberedRequests {
  const domains = rememberedDomains();
  const digests = new Int32Array(MAX_REMEMBERED_BODIES);
  const bodies: Uint8Array[] = [];
  const requests: SignRequest[] = [];
  const roots: (Uint8Array | undefined)[] = [];
  let oldest = 0;

  function find(body: Uint8Array, digest: number): SignRequest | undefined {
    for (let at = digests.indexOf(digest); at !== -1; at = digests.indexOf(digest, at + 1)) {
      const known = bodies[at];
      if (known !== undefined && Buffer.compare(known, body) === 0) return requests[at];
    }
    return undefined;
  }

  return {
    parse(body) {
      if (body.length > MAX_REMEMBERED_BODY_BYTES) return parseSignRequest(body);
      const digest = digestOf(body);
      const known = find(body, digest);
      if (known !== undefined) return { kind: 'request', request: known };
      const parsed = parseSignRequest(body);
      if (parsed.kind === 'refused') return parsed;
      digests[oldest] = digest;
      bodies[oldest] = new Uint8Array(body);
      requests[oldest] = parsed.request;
      roots[oldest] = undefined;
      oldest = (oldest + 1) % MAX_REMEMBERED_BODIES;
      return parsed;
    },
    rootOf(request) {
      const at = requests.indexOf(request); // by identity: a root is never taken for that of another request
      const root = roots[at] ?? computeSigningRoot(request, network, domains);
      if (at !== -1) roots[at] = root;
      return root;
    },
  };
}

function digestOf(body: Uint8Array): number {
  let digest = body.length;
  for (let at = 0; at < body.length; at += DIGEST_STEP) digest = Math.imul(digest ^ (body[at] ?? 0), DIGEST_FACTOR);
  return digest;
}
