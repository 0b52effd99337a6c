// docs/reference/audit.md, from the tables that audit lines are made with.

import { AUDIT_MEMBERS } from '../../signer/api/audit-members.ts';
import { OPERATION_ENTRIES, OPERATIONS } from '../../signer/api/operations.ts';
import type { Position } from '../../signer/operations/row.ts';
import { codes, table, tableOfAlike } from './markdown.ts';

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
      (operation) => membersOf(OPERATION_ENTRIES[operation].states),
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
