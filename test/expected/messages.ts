// A request of each type for a slot, as a client sends it that knows the network's schedule.

import { type Body, type Chain, scheduledFork } from './expected-root.ts';

const ROOT = `0x${'5a'.repeat(32)}`;
const SIGNATURE = `0x${'22'.repeat(96)}`;
const ADDRESS = `0x${'33'.repeat(20)}`;

export type Members = Readonly<Record<string, unknown>>;

export interface ForkInfo {
  readonly fork: { readonly previous_version: string; readonly current_version: string; readonly epoch: string };
  readonly genesis_validators_root: string;
}

/** The fork in force at an epoch and the one before it. */
export function forkInfoAt(chain: Chain, epoch: number): ForkInfo {
  const current = scheduledFork(chain, epoch);
  const previous = chain.forks[Math.max(0, chain.forks.indexOf(current) - 1)] ?? current;
  return {
    fork: {
      previous_version: previous.version,
      current_version: current.version,
      epoch: String(current.epoch),
    },
    genesis_validators_root: chain.genesisValidatorsRoot,
  };
}

export const SINCE_PHASE0 = [
  'ATTESTATION',
  'BLOCK_V2',
  'AGGREGATION_SLOT',
  'RANDAO_REVEAL',
  'AGGREGATE_AND_PROOF',
  'AGGREGATE_AND_PROOF_V2',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
  'VOLUNTARY_EXIT',
  'VALIDATOR_REGISTRATION',
] as const;

export const SINCE_GLOAS = [
  'PAYLOAD_ATTESTATION_MESSAGE',
  'PROPOSER_PREFERENCES',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'BUILDER_REQUEST_AUTH',
] as const;

export type MessageType = (typeof SINCE_PHASE0)[number] | (typeof SINCE_GLOAS)[number];

/** The message is bare, but for blocks and AGGREGATE_AND_PROOF_V2, which state their version. */
export function requestAt(chain: Chain, type: MessageType, slot: number, changes: Members = {}): Body {
  const epoch = Math.floor(slot / chain.slotsPerEpoch);
  const fork = scheduledFork(chain, epoch).name;
  const [member, plain] = messageOf(type, slot, epoch, fork);
  const message = { ...plain, ...changes };
  const version = fork.toUpperCase();
  const stated =
    type === 'BLOCK_V2'
      ? { version, block_header: message }
      : type === 'AGGREGATE_AND_PROOF_V2'
        ? { version, data: message }
        : message;
  const needsFork = type !== 'VALIDATOR_REGISTRATION' && type !== 'BUILDER_REQUEST_AUTH';
  return { type, ...(needsFork ? { fork_info: forkInfoAt(chain, epoch) } : {}), [member]: stated };
}

function messageOf(type: MessageType, slot: number, epoch: number, fork: string): readonly [string, Members] {
  const at = { slot: String(slot) };
  const checkpoint = (of: number) => ({ epoch: String(Math.max(0, of)), root: ROOT });
  const roots = { source: checkpoint(epoch - 1), target: checkpoint(epoch) };
  const vote = { ...at, index: '0', beacon_block_root: ROOT, ...roots };
  switch (type) {
    case 'ATTESTATION':
      return ['attestation', vote];
    case 'BLOCK_V2':
      return ['beacon_block', { ...at, proposer_index: '7', parent_root: ROOT, state_root: ROOT, body_root: ROOT }];
    case 'AGGREGATION_SLOT':
      return ['aggregation_slot', at];
    case 'RANDAO_REVEAL':
      return ['randao_reveal', { epoch: String(epoch) }];
    case 'AGGREGATE_AND_PROOF':
    case 'AGGREGATE_AND_PROOF_V2': {
      const committees = ['electra', 'fulu', 'gloas'].includes(fork) ? { committee_bits: `0x01${'00'.repeat(7)}` } : {};
      const aggregate = { aggregation_bits: '0x0f', data: vote, signature: SIGNATURE, ...committees };
      return ['aggregate_and_proof', { aggregator_index: '7', aggregate, selection_proof: SIGNATURE }];
    }
    case 'SYNC_COMMITTEE_MESSAGE':
      return ['sync_committee_message', { ...at, beacon_block_root: ROOT }];
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return ['sync_aggregator_selection_data', { ...at, subcommittee_index: '1' }];
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF': {
      const bits = { subcommittee_index: '1', aggregation_bits: `0x${'0f'.repeat(16)}` };
      const contribution = { ...at, beacon_block_root: ROOT, ...bits, signature: SIGNATURE };
      return ['contribution_and_proof', { aggregator_index: '7', selection_proof: SIGNATURE, contribution }];
    }
    case 'VOLUNTARY_EXIT':
      return ['voluntary_exit', { epoch: String(epoch), validator_index: '7' }];
    case 'VALIDATOR_REGISTRATION': {
      const paid = { fee_recipient: ADDRESS, gas_limit: '60000000', timestamp: '1790000000' };
      return ['validator_registration', { ...paid, pubkey: `0x${'44'.repeat(48)}` }];
    }
    case 'PAYLOAD_ATTESTATION_MESSAGE':
      return [
        'payload_attestation_message',
        { ...at, beacon_block_root: ROOT, payload_present: true, blob_data_available: false },
      ];
    case 'PROPOSER_PREFERENCES': {
      const paid = { validator_index: '7', fee_recipient: ADDRESS, target_gas_limit: '60000000' };
      return ['proposer_preferences', { dependent_root: ROOT, proposal_slot: String(slot), ...paid }];
    }
    case 'BUILDER_REQUEST_AUTH':
      return ['builder_request_auth', { data: `0x${Buffer.from('builder.example.org').toString('hex')}`, ...at }];
    case 'EXECUTION_PAYLOAD_ENVELOPE':
      return ['execution_payload_envelope', envelope(slot)];
  }
}

function envelope(slot: number): Members {
  const hashes = { parent_hash: ROOT, state_root: ROOT, receipts_root: ROOT, prev_randao: ROOT, block_hash: ROOT };
  const gas = { gas_limit: '60000000', gas_used: '0', base_fee_per_gas: '7', blob_gas_used: '0', excess_blob_gas: '0' };
  const bytes = { logs_bloom: `0x${'00'.repeat(256)}`, extra_data: '0x', block_access_list: '0x' };
  const lists = { transactions: ['0x02f8'], withdrawals: [] };
  const numbers = { block_number: '1', timestamp: '1', slot_number: String(slot) };
  return {
    payload: { ...hashes, fee_recipient: ADDRESS, ...gas, ...bytes, ...lists, ...numbers },
    execution_requests: { deposits: [], withdrawals: [], consolidations: [], builder_deposits: [], builder_exits: [] },
    builder_index: '1',
    beacon_block_root: ROOT,
    parent_beacon_block_root: ROOT,
  };
}
