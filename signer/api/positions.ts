// Where on the chain a message stands, for the audit line. An operation without a slot needs a case here, or does not
// compile.

import type { SignRequest } from './sign-request.ts';

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
