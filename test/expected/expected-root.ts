// The signing root that the consensus rules ask for, computed without the signer's code, by the fork of the network's
// schedule. A type or a fork that is not here throws.

import { ssz } from '@lodestar/types';

export interface Chain {
  readonly genesisValidatorsRoot: string;
  readonly slotsPerEpoch: number;
  /** In their order; an epoch of null is not announced. */
  readonly forks: readonly { readonly name: string; readonly version: string; readonly epoch: number | null }[];
}

export type Body = Readonly<Record<string, unknown>> & { readonly type: string };

type Members = Readonly<Record<string, unknown>>;

interface SszType {
  readonly fromJson: (json: unknown) => unknown;
  readonly hashTreeRoot: (value: never) => Uint8Array;
}

interface Kind {
  readonly members: readonly string[];
  readonly domain: number;
  /** Selects the fork version: by slot or epoch, Capella's (EIP-7044), or the genesis one without a chain. */
  readonly version:
    | { readonly slot: (message: Members) => unknown }
    | { readonly epoch: (message: Members) => unknown }
    | 'capella'
    | 'genesis';
  readonly type?: SszType | ((fork: string) => SszType);
  readonly root?: (message: Members) => Uint8Array;
}

const at = (message: Members, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Members)[name], message);
const slotOf = { slot: (message: Members) => message['slot'] };

const SINCE_ELECTRA = ['electra', 'fulu'];
const aggregateOf = (fork: string): SszType => {
  if (SINCE_ELECTRA.includes(fork)) return ssz.electra.AggregateAndProof;
  return ['gloas', 'heze'].includes(fork) ? ssz.gloas.AggregateAndProof : ssz.phase0.AggregateAndProof;
};

const KINDS: Readonly<Record<string, Kind>> = {
  ATTESTATION: {
    members: ['attestation'],
    domain: 0x01000000,
    version: { epoch: (message) => at(message, 'target', 'epoch') },
    type: ssz.phase0.AttestationData,
  },
  BLOCK_V2: { members: ['beacon_block'], domain: 0x00000000, version: slotOf, type: ssz.phase0.BeaconBlockHeader },
  AGGREGATION_SLOT: {
    members: ['aggregation_slot'],
    domain: 0x05000000,
    version: slotOf,
    root: (m) => uint64(m['slot']),
  },
  RANDAO_REVEAL: {
    members: ['randao_reveal'],
    domain: 0x02000000,
    version: { epoch: (message) => message['epoch'] },
    root: (message) => uint64(message['epoch']),
  },
  AGGREGATE_AND_PROOF: {
    members: ['aggregate_and_proof'],
    domain: 0x06000000,
    version: { slot: (message) => at(message, 'aggregate', 'data', 'slot') },
    type: aggregateOf,
  },
  SYNC_COMMITTEE_MESSAGE: {
    members: ['sync_committee_message'],
    domain: 0x07000000,
    version: slotOf,
    root: (message) => bytes(message['beacon_block_root']),
  },
  SYNC_COMMITTEE_SELECTION_PROOF: {
    members: ['sync_aggregator_selection_data'],
    domain: 0x08000000,
    version: slotOf,
    type: ssz.altair.SyncAggregatorSelectionData,
  },
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: {
    members: ['contribution_and_proof'],
    domain: 0x09000000,
    version: { slot: (message) => at(message, 'contribution', 'slot') },
    type: ssz.altair.ContributionAndProof,
  },
  VOLUNTARY_EXIT: {
    members: ['voluntary_exit'],
    domain: 0x04000000,
    version: 'capella',
    type: ssz.phase0.VoluntaryExit,
  },
  VALIDATOR_REGISTRATION: {
    members: ['validator_registration'],
    domain: 0x00000001,
    version: 'genesis',
    type: ssz.bellatrix.ValidatorRegistrationV1,
  },
  PAYLOAD_ATTESTATION_MESSAGE: {
    members: ['payload_attestation_message', 'payload_attestation_data', 'payload_attestation'],
    domain: 0x0c000000,
    version: slotOf,
    type: ssz.gloas.PayloadAttestationData,
  },
  PROPOSER_PREFERENCES: {
    members: ['proposer_preferences'],
    domain: 0x0d000000,
    version: { slot: (message) => message['proposal_slot'] },
    type: ssz.gloas.ProposerPreferences,
  },
  BUILDER_REQUEST_AUTH: {
    members: ['builder_request_auth', 'request_auth'],
    domain: 0x0b000001,
    version: 'genesis',
    type: ssz.gloas.BuilderRequestAuth,
  },
  EXECUTION_PAYLOAD_BID: {
    members: ['execution_payload_bid'],
    domain: 0x0b000000,
    version: slotOf,
    type: ssz.gloas.ExecutionPayloadBid,
  },
  EXECUTION_PAYLOAD_ENVELOPE: {
    members: ['execution_payload_envelope'],
    domain: 0x0b000000,
    version: { slot: (message) => at(message, 'payload', 'slot_number') },
    type: ssz.gloas.ExecutionPayloadEnvelope,
  },
};

const OTHER_NAMES: Readonly<Record<string, string>> = {
  AGGREGATE_AND_PROOF_V2: 'AGGREGATE_AND_PROOF',
  PAYLOAD_ATTESTATION: 'PAYLOAD_ATTESTATION_MESSAGE',
  REQUEST_AUTH: 'BUILDER_REQUEST_AUTH',
};

export function expectedRoot(body: Body, chain: Chain): Uint8Array {
  const name = body.type.toUpperCase();
  const kind = KINDS[OTHER_NAMES[name] ?? name];
  if (kind === undefined) throw new Error(`no expected root of a ${body.type}`);
  const message = messageOf(body, kind);
  const fork = forkOf(kind, message, chain);
  const type = typeof kind.type === 'function' ? kind.type(fork.name) : kind.type;
  const objectRoot = kind.root?.(message) ?? type?.hashTreeRoot(type.fromJson(message) as never);
  if (objectRoot === undefined) throw new Error(`no container of a ${body.type}`);
  const domain = domainOf(kind, bytes(fork.version), chain);
  return ssz.phase0.SigningData.hashTreeRoot({ objectRoot, domain });
}

/** The fork that the schedule gives for an epoch: the last that has begun. */
export function scheduledFork({ forks }: Chain, epoch: number): Chain['forks'][number] {
  const fork = forks.findLast((one) => one.epoch !== null && one.epoch <= epoch);
  if (fork === undefined) throw new Error(`the schedule has no fork for epoch ${epoch}`);
  return fork;
}

function messageOf(body: Body, { members }: Kind): Members {
  const member = members.find((one) => typeof body[one] === 'object' && body[one] !== null);
  if (member === undefined) throw new Error(`a ${body.type} without ${members[0]}`);
  const { data, block_header: header, ...bare } = body[member] as Members;
  const found = (header ?? (typeof data === 'object' ? data : body[member])) as Members;
  return 'gas_limit' in bare && 'proposal_slot' in bare ? { ...bare, target_gas_limit: bare['gas_limit'] } : found;
}

function forkOf({ version }: Kind, message: Members, chain: Chain): Chain['forks'][number] {
  if (version === 'capella' || version === 'genesis') {
    const name = version === 'capella' ? 'capella' : 'phase0';
    const fork = chain.forks.find((one) => one.name === name);
    if (fork === undefined) throw new Error(`the network has no ${name}`);
    return fork;
  }
  const epoch =
    'epoch' in version
      ? Number(version.epoch(message))
      : Math.floor(Number(version.slot(message)) / chain.slotsPerEpoch);
  return scheduledFork(chain, epoch);
}

function domainOf({ domain, version }: Kind, currentVersion: Uint8Array, chain: Chain): Uint8Array {
  const genesisValidatorsRoot = version === 'genesis' ? new Uint8Array(32) : bytes(chain.genesisValidatorsRoot);
  const root = ssz.phase0.ForkData.hashTreeRoot({ currentVersion, genesisValidatorsRoot });
  const made = Buffer.alloc(32);
  made.writeUInt32BE(domain);
  made.set(root.subarray(0, 28), 4);
  return made;
}

function uint64(value: unknown): Uint8Array {
  const chunk = Buffer.alloc(32);
  chunk.writeBigUInt64LE(BigInt(String(value)));
  return chunk;
}

function bytes(hex: unknown): Uint8Array {
  return Uint8Array.from(Buffer.from(String(hex).replace(/^0x/i, ''), 'hex'));
}
