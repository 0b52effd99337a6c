// Where on the chain a message stands, for the audit line. An operation without an entry here does not compile.

import { type Operation, unreachable } from './operations.ts';
import type { SignRequest } from './sign-request.ts';

export interface Position {
  readonly slot?: number;
  readonly epoch?: number;
  readonly sourceEpoch?: number;
  readonly targetEpoch?: number;
}

export const POSITION_MEMBERS = {
  AGGREGATION_SLOT: ['slot'],
  AGGREGATE_AND_PROOF: ['slot'],
  ATTESTATION: ['slot', 'sourceEpoch', 'targetEpoch'],
  BLOCK_V2: ['slot'],
  BUILDER_REQUEST_AUTH: ['slot'],
  EXECUTION_PAYLOAD_BID: ['slot'],
  EXECUTION_PAYLOAD_ENVELOPE: ['slot'],
  INCLUSION_LIST: ['slot'],
  PAYLOAD_ATTESTATION_MESSAGE: ['slot'],
  PROPOSER_PREFERENCES: ['slot'],
  RANDAO_REVEAL: ['epoch'],
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: ['slot'],
  SYNC_COMMITTEE_MESSAGE: ['slot'],
  SYNC_COMMITTEE_SELECTION_PROOF: ['slot'],
  VALIDATOR_REGISTRATION: [],
  VOLUNTARY_EXIT: ['epoch'],
} as const satisfies Readonly<Record<Operation, readonly (keyof Position)[]>>;

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
    case 'AGGREGATION_SLOT':
    case 'BLOCK_V2':
    case 'BUILDER_REQUEST_AUTH':
    case 'EXECUTION_PAYLOAD_BID':
    case 'EXECUTION_PAYLOAD_ENVELOPE':
    case 'INCLUSION_LIST':
    case 'PAYLOAD_ATTESTATION_MESSAGE':
    case 'SYNC_COMMITTEE_MESSAGE':
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return { slot: request.message.slot };
    case 'VALIDATOR_REGISTRATION':
      return undefined;
    default:
      return unreachable(request);
  }
}
