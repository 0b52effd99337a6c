// docs/reference/permissions.md, generated: which actions the policies of `strongroom setup` grant, in which phase, and
// what for.

import { ADMINISTRATION_ACTIONS, type KeyPolicyStatement, keyPolicyStatements } from './key-policy.ts';
import { PHASES, type PolicyDocument, type Statement } from './policy-document.ts';
import {
  endpointPolicy,
  parentPolicy,
  recoveryPolicy,
  signerPolicy,
  tableResourcePolicy,
  tablesPolicy,
} from './role-policy.ts';
import { DELETIONS, TABLE_ACTIONS, TABLES, type TableKind } from './table-permissions.ts';

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
${DELETIONS.map((action) => `\`${action}\``).join(', ')} to everybody.

## KMS

| Action | Who | When | What for |
|---|---|---|---|
| \`kms:Decrypt\` | the signer, or the parent of an enclave with one of the listed images | always | shares of the master key; sealed table credentials |
| \`kms:DescribeKey\` | the same, without attestation | always | whether a custody key can be reached |
| \`kms:Encrypt\` | the signer, or the table user of an enclave, for shares of this deployment | first-boot, rotation | shares of the master key |
| \`kms:Encrypt\` | the one who seals table credentials, for these only | as long as \`--sealer\` names them | [sealed table credentials](../guides/custody.md#sealed-table-credentials) |
| ${ADMINISTRATION_ACTIONS.map((action) => `\`${action}\``).join(', ')} | the administrators, and the key's account by its own policies | always | to keep the key administrable |

Denied, whatever else allows it: \`kms:CreateGrant\`, \`kms:ReEncryptFrom\` and \`kms:ReEncryptTo\` to everybody, the
administration to the signer, and for an enclave's key \`kms:Decrypt\` without attestation.
`;
}

function tableSection(table: TableKind): string {
  const rows = TABLE_ACTIONS[table].map(({ action, phases, why, onlyByName }) => {
    const when = phases.length === PHASES.length ? 'always' : phases.join(', ');
    return `- \`dynamodb:${action}\`${when === 'always' ? '' : ` (${when})`}: ${why}${onlyByName === true ? '; for a table that is named without its ARN' : ''}`;
  });
  return `
### ${NAMES[table]}

${rows.join('\n')}
`;
}

// The same documents as templates for deploy/terraform (`make docs` writes them). A value that Terraform knows stands
// as `${jsonencode(…)}`. A test renders them and compares with the documents.

interface Template {
  readonly path: string;
  readonly generate: () => string;
}

const value = (name: string): string => `@(${name})`;
const list = (name: string): string => `@[${name}]`;

const TABLE_ARNS = Object.fromEntries(
  TABLES.map((kind) => [kind, { arn: value(`${kind}_table_arn`), isPinned: true }]),
) as Readonly<Record<TableKind, { readonly arn: string; readonly isPinned: true }>>; // one entry each

export const TEMPLATES: readonly Template[] = [
  { path: 'custody-key/key-policy.json.tftpl', generate: () => keyPolicyTemplate('attested') },
  { path: 'custody-key/key-policy-unattested.json.tftpl', generate: () => keyPolicyTemplate('without attestation') },
  ...PHASES.flatMap((phase): readonly Template[] => [
    {
      path: `signer/policies/signer-${phase}.json.tftpl`,
      generate: () => asTemplate(signerPolicy({ keyArns: [list('key_arns')], tables: TABLE_ARNS, phase })),
    },
    {
      path: `signer/policies/tables-${phase}.json.tftpl`,
      generate: () => asTemplate(tablesPolicy({ keyArns: [list('key_arns')], tables: TABLE_ARNS, phase })),
    },
    {
      path: `signer/policies/endpoint-${phase}.json.tftpl`,
      generate: () => asTemplate(endpointPolicy(TABLE_ARNS, phase)),
    },
  ]),
  { path: 'signer/policies/parent.json.tftpl', generate: () => asTemplate(parentPolicy([list('key_arns')])) },
  { path: 'signer/policies/recovery.json.tftpl', generate: () => asTemplate(recoveryPolicy(value('state_table_arn'))) },
  ...TABLES.flatMap((kind): readonly Template[] => [
    ...resourcePolicyTemplate(kind, [], kind),
    ...resourcePolicyTemplate(kind, [list('kept_out')], `${kind}-not-the-parents`),
  ]),
];

function resourcePolicyTemplate(kind: TableKind, keptOut: readonly string[], name: string): readonly Template[] {
  const document = tableResourcePolicy(kind, value('table_arn'), keptOut);
  if (document === undefined) return [];
  return [{ path: `signer/policies/table-${name}.json.tftpl`, generate: () => asTemplate(document) }];
}

const IMAGE = { imageSha384: [value('image.PCR0')], pcr16: [value('image.PCR16')], pcr17: [value('image.PCR17')] };

const DIRECTIVES: Readonly<Record<KeyPolicyStatement['kind'], readonly [string, string] | undefined>> = {
  always: undefined,
  encrypt: ['%{ if phase != "running" ~}', '%{ endif ~}'],
  image: ['%{ for index, image in images ~}', '%{ endfor ~}'],
  sealers: ['%{ if length(sealers) > 0 ~}', '%{ endif ~}'],
  sealed: ['%{ if !unsafe_parents_encrypt ~}', '%{ endif ~}'],
};

function keyPolicyTemplate(kind: 'attested' | 'without attestation'): string {
  const statements = keyPolicyStatements(
    {
      administrators: [list('administrators')],
      signers: [list('signers')],
      // The template's own question: the signers themselves, where the parents write the tables.
      tableUsers: kind === 'attested' ? [list('encrypting')] : 'the signers',
      images: kind === 'attested' ? [IMAGE] : kind,
      phase: 'first-boot', // the template asks for itself
      deployment: { network: value('network'), id: value('deployment_id') },
      sealers: [list('sealers')],
    },
    value('account'),
  );
  return inDocument(
    statements.flatMap(({ kind: depends, statement }, at) => {
      const [before, after] = DIRECTIVES[depends] ?? [];
      const line = filledIn(statement) + (at === statements.length - 1 ? '' : ',');
      return before === undefined || after === undefined ? [line] : [before, line.replace('Image1', IMAGE_SID), after];
    }),
  );
}

const IMAGE_SID = `Image\${index + 1}`;

function asTemplate({ Statement }: PolicyDocument): string {
  return inDocument(Statement.map((statement, at) => filledIn(statement) + (at === Statement.length - 1 ? '' : ',')));
}

function inDocument(lines: readonly string[]): string {
  return `{"Version":"2012-10-17","Statement":[\n${lines.join('\n')}\n]}\n`;
}

function filledIn(statement: Statement): string {
  const encoded = (_: string, name: string): string => `\${jsonencode(${name})}`;
  return JSON.stringify(statement)
    .replace(/\["@\[([\w.]+)\]"\]/g, encoded)
    .replace(/"@\(([\w.]+)\)"/g, encoded);
}
