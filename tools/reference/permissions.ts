// docs/reference/permissions.md, generated: which actions the policies of `strongroom setup` grant, in which phase, and
// what for.

import { ADMINISTRATION_ACTIONS } from '../../setup/key-policy.ts';
import { PHASES } from '../../setup/policy-document.ts';
import { DELETIONS, TABLE_ACTIONS, TABLES, type TableKind } from '../../setup/table-permissions.ts';
import { codes } from './markdown.ts';

const NAMES: Readonly<Record<TableKind, string>> = {
  state: 'The state table',
  keys: 'The key table',
  slashing: 'The slashing table',
};

export function permissionsReference(): string {
  return `# Permissions

Generated from the source by \`make docs\`. \`strongroom setup kms-policy\` and \`strongroom setup iam\` print the policies
([guides/custody.md](../guides/custody.md)). \`test/setup/signer-permissions.test.ts\` runs the real program under them,
in each phase: what is not in these lists is refused there, and what is in them is used.

| Phase | When |
|---|---|
| \`running\` | always, once the state table is initialised: restarts too |
| \`first-boot\` | until the first start has written the master key |
| \`rotation\` | while a ceremony of a higher generation wraps the master key anew |

## DynamoDB

A transaction has no action of its own (there is no \`TransactGetItems\` and no \`TransactWriteItems\`): DynamoDB asks for
the actions of what stands in it, \`ConditionCheckItem\` among them.
${TABLES.map(tableSection).join('')}
Nothing deletes a slashing record. The policy of that table (\`setup iam --for table --table slashing\`) denies
${codes(DELETIONS)} to everybody.

## KMS

| Action | Who | When | What for |
|---|---|---|---|
| \`kms:Decrypt\` | the signer, or the parent of an enclave with one of the listed images | always | shares of the master key; sealed table credentials |
| \`kms:DescribeKey\` | the same, without attestation | always | whether a custody key can be reached |
| \`kms:Encrypt\` | the signer, or the table user of an enclave, for shares of this deployment | first-boot, rotation | shares of the master key |
| \`kms:Encrypt\` | the one who seals table credentials, for these only | as long as \`--sealer\` names them | [sealed table credentials](../guides/custody.md#sealed-table-credentials) |
| ${codes(ADMINISTRATION_ACTIONS)} | the administrators, and the key's account by its own policies | always | to keep the key administrable |

Denied, whatever else allows it: \`kms:CreateGrant\`, \`kms:ReEncryptFrom\` and \`kms:ReEncryptTo\` to everybody, the
administration to the signer, and for an enclave's key \`kms:Decrypt\` without attestation.
`;
}

function tableSection(table: TableKind): string {
  const rows = TABLE_ACTIONS[table].map(({ action, phases, why, onlyByName }) => {
    const when = phases.length === PHASES.length ? '' : ` (${phases.join(', ')})`;
    return `- \`dynamodb:${action}\`${when}: ${why}${onlyByName === true ? '; for a table that is named without its ARN' : ''}`;
  });
  return `
### ${NAMES[table]}

${rows.join('\n')}
`;
}
