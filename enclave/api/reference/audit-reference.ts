// docs/reference/audit.md, generated from the tables that audit lines are made with.

import { OPERATIONS } from '../operations.ts';
import { POSITION_MEMBERS, type Position } from '../positions.ts';
import { AUDIT_MEMBERS } from './audit-members.ts';

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
    'Generated from `enclave/api/reference/audit-members.ts`. Every request of an authenticated route leaves one line',
    '(`request`) in the log with `audit: true`, and each key of a batch that is not signed one more (`key of a batch`).',
    'They are of the module `audit`, whose level only `audit=LEVEL` in `logging.level` changes. A member without a value',
    'is left out.',
    '',
    '| Member | What it says |',
    '|---|---|',
    ...Object.entries(AUDIT_MEMBERS).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
    '',
    '## What a signing request says of its message',
    '',
    'Every one of them has `signing_root`.',
    '',
    '| Operation | Where on the chain |',
    '|---|---|',
    ...OPERATIONS.map((operation) => `| \`${operation}\` | ${membersOf(POSITION_MEMBERS[operation])} |`),
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
  return names.length === 0 ? '-' : names.map((name) => `\`${LOG_NAMES[name]}\``).join(', ');
}
