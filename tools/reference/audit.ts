// docs/reference/audit.md, from the tables that audit lines are made with.

import { AUDIT_MEMBERS } from '../../signer/api/audit-members.ts';
import { OPERATIONS, type Operation } from '../../signer/api/operations.ts';
import type { Position } from '../../signer/api/sign-request.ts';
import { codes, table, tableOfAlike } from './markdown.ts';

/** What positionOf() gives. */
export const POSITION_MEMBERS = {
  AGGREGATION_SLOT: ['slot'],
  AGGREGATE_AND_PROOF: ['slot'],
  ATTESTATION: ['slot', 'sourceEpoch', 'targetEpoch'],
  BLOCK_V2: ['slot'],
  BUILDER_REQUEST_AUTH: ['slot'],
  EXECUTION_PAYLOAD_BID: ['slot'],
  EXECUTION_PAYLOAD_ENVELOPE: ['slot'],
  PAYLOAD_ATTESTATION_MESSAGE: ['slot'],
  PROPOSER_PREFERENCES: ['slot'],
  RANDAO_REVEAL: ['epoch'],
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: ['slot'],
  SYNC_COMMITTEE_MESSAGE: ['slot'],
  SYNC_COMMITTEE_SELECTION_PROOF: ['slot'],
  VALIDATOR_REGISTRATION: [],
  VOLUNTARY_EXIT: ['epoch'],
} as const satisfies Readonly<Record<Operation, readonly (keyof Position)[]>>;

const LOG_NAMES = {
  slot: 'slot',
  epoch: 'epoch',
  sourceEpoch: 'source_epoch',
  targetEpoch: 'target_epoch',
} as const satisfies Record<keyof Position, keyof typeof AUDIT_MEMBERS>;

export function auditReference(): string {
  return [
    '# Audit lines',
    '',
    'Generated from `signer/api/audit-members.ts`. Every request of an authenticated route leaves one line',
    '(`request`) in the log with `audit: true`, and each key of a batch that is not signed one more (`key of a batch`).',
    'They are of the module `audit`, whose level only `audit=LEVEL` in `logging.level` changes. A member without a value',
    'is left out.',
    '',
    table(Object.entries(AUDIT_MEMBERS)),
    '',
    '## What a signing request says of its message',
    '',
    'Every one of them has `signing_root`, and where the message is on the chain:',
    '',
    tableOfAlike(
      OPERATIONS,
      (operation) => operation,
      (operation) => membersOf(POSITION_MEMBERS[operation]),
    ),
    '',
    'A vote that may be slashable is found by its key and its `target_epoch`, a block by its key and its `slot`; equal',
    'signing roots are the same message signed again:',
    '',
    '```',
    'journalctl -u strongroom -o cat | jq -cR \'fromjson? | select(.audit and .operation == "ATTESTATION" and .target_epoch == 411392)\'',
    '```',
    '',
  ].join('\n');
}

function membersOf(names: readonly (keyof Position)[]): string {
  return names.length === 0 ? 'nothing else' : codes(names.map((name) => LOG_NAMES[name]));
}
