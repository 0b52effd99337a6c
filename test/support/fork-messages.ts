// A request of each type for any slot of any network, with the forks that its client believes in.

import { encodeHex } from '../../common/formats/hex.ts';
import type { ForkName } from '../../signer/api/forks.ts';
import type { Network } from '../../signer/sign/networks.ts';

const ROOT = `0x${'11'.repeat(32)}`;
const SIGNATURE = `0x${'22'.repeat(96)}`;
const ADDRESS = `0x${'33'.repeat(20)}`;

export const MESSAGES_OF_GLOAS = [
  'PAYLOAD_ATTESTATION_MESSAGE',
  'PROPOSER_PREFERENCES',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'EXECUTION_PAYLOAD_BID',
  'BUILDER_REQUEST_AUTH',
];

type Members = Record<string, unknown>;

export function versionOf({ forks }: Network, name: ForkName): Uint8Array {
  const fork = forks.find((candidate) => candidate.name === name);
  if (fork === undefined) throw new Error(`the network has no ${name}`);
  return fork.version;
}

/** @param forks `stated` puts the message in `{version, data}` */
export function messageAt(
  network: Network,
  type: string,
  slot: number,
  forks: { previous: ForkName; current: ForkName; epoch: number; stated?: string },
): Members {
  const epoch = Math.floor(slot / network.slotsPerEpoch);
  const [member, message] = bodyOf(type, slot, epoch);
  const isBlock = type === 'BLOCK_V2';
  const version = forks.stated ?? (isBlock ? (epoch < forks.epoch ? forks.previous : forks.current) : undefined);
  const content = isBlock ? { version, block_header: message } : { version, data: message };
  return {
    type,
    fork_info: {
      fork: {
        previous_version: encodeHex(versionOf(network, forks.previous)),
        current_version: encodeHex(versionOf(network, forks.current)),
        epoch: String(forks.epoch),
      },
      genesis_validators_root: encodeHex(network.genesisValidatorsRoot),
    },
    [member]: version === undefined ? message : content,
  };
}

function bodyOf(type: string, slot: number, epoch: number): readonly [string, Members] {
  const vote = {
    slot: String(slot),
    index: '0',
    beacon_block_root: ROOT,
    source: { epoch: String(Math.max(0, epoch - 1)), root: ROOT },
    target: { epoch: String(epoch), root: ROOT },
  };
  switch (type) {
    case 'ATTESTATION':
      return ['attestation', vote];
    case 'AGGREGATE_AND_PROOF':
    case 'AGGREGATE_AND_PROOF_V2': {
      const committee_bits = `0x01${'00'.repeat(7)}`;
      const aggregate = { aggregation_bits: '0x0f', data: vote, signature: SIGNATURE, committee_bits };
      return ['aggregate_and_proof', { aggregator_index: '7', aggregate, selection_proof: SIGNATURE }];
    }
    case 'AGGREGATION_SLOT':
      return ['aggregation_slot', { slot: String(slot) }];
    case 'BLOCK_V2': {
      const roots = { parent_root: ROOT, state_root: ROOT, body_root: ROOT };
      return ['beacon_block', { slot: String(slot), proposer_index: '7', ...roots }];
    }
    case 'RANDAO_REVEAL':
      return ['randao_reveal', { epoch: String(epoch) }];
    case 'SYNC_COMMITTEE_MESSAGE':
      return ['sync_committee_message', { beacon_block_root: ROOT, slot: String(slot) }];
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return ['sync_aggregator_selection_data', { slot: String(slot), subcommittee_index: '1' }];
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF': {
      const bits = { subcommittee_index: '1', aggregation_bits: `0x${'0f'.repeat(16)}` };
      const contribution = { slot: String(slot), beacon_block_root: ROOT, ...bits, signature: SIGNATURE };
      return ['contribution_and_proof', { aggregator_index: '7', selection_proof: SIGNATURE, contribution }];
    }
    case 'VOLUNTARY_EXIT':
      return ['voluntary_exit', { epoch: String(epoch), validator_index: '7' }];
    case 'PAYLOAD_ATTESTATION_MESSAGE': {
      const seen = { payload_present: true, blob_data_available: false };
      return ['payload_attestation_message', { beacon_block_root: ROOT, slot: String(slot), ...seen }];
    }
    case 'PROPOSER_PREFERENCES': {
      const paid = { validator_index: '7', fee_recipient: ADDRESS, target_gas_limit: '60000000' };
      return ['proposer_preferences', { dependent_root: ROOT, proposal_slot: String(slot), ...paid }];
    }
    case 'BUILDER_REQUEST_AUTH':
      return ['builder_request_auth', { data: '0x6275', slot: String(slot) }];
    case 'EXECUTION_PAYLOAD_BID':
      return ['execution_payload_bid', bid(slot)];
    case 'EXECUTION_PAYLOAD_ENVELOPE':
      return ['execution_payload_envelope', envelope(slot)];
    default:
      throw new Error(`no message of type ${type}`);
  }
}

function bid(slot: number): Members {
  return {
    parent_block_hash: ROOT,
    parent_block_root: ROOT,
    block_hash: ROOT,
    prev_randao: ROOT,
    fee_recipient: ADDRESS,
    gas_limit: '60000000',
    builder_index: '7',
    slot: String(slot),
    value: '1',
    execution_payment: '0',
    blob_kzg_commitments: [],
    execution_requests_root: ROOT,
  };
}

/** @param transactions of its payload */
export function envelope(slot: number, transactions: readonly string[] = []): Members {
  return {
    payload: {
      parent_hash: ROOT,
      fee_recipient: ADDRESS,
      state_root: ROOT,
      receipts_root: ROOT,
      logs_bloom: `0x${'00'.repeat(256)}`,
      prev_randao: ROOT,
      block_number: '1',
      gas_limit: '60000000',
      gas_used: '0',
      timestamp: '1',
      extra_data: '0x',
      base_fee_per_gas: '7',
      block_hash: ROOT,
      transactions,
      withdrawals: [],
      blob_gas_used: '0',
      excess_blob_gas: '0',
      block_access_list: '0x',
      slot_number: String(slot),
    },
    execution_requests: {
      deposits: [],
      withdrawals: [],
      consolidations: [],
      builder_deposits: [],
      builder_exits: [],
    },
    builder_index: '18446744073709551615',
    beacon_block_root: ROOT,
    parent_beacon_block_root: ROOT,
  };
}
