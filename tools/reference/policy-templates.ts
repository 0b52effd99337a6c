// The policies that `strongroom setup` prints, as templates for deploy/terraform. A value that Terraform knows stands
// as `${jsonencode(…)}`. A test renders them and compares with the documents.

import { type KeyPolicyStatement, keyPolicyStatements } from '../../setup/key-policy.ts';
import { PHASES, type PolicyDocument, type PolicyStatement } from '../../setup/policy-document.ts';
import {
  endpointPolicy,
  parentPolicy,
  recoveryPolicy,
  signerPolicy,
  tableResourcePolicy,
  tablesPolicy,
} from '../../setup/role-policy.ts';
import { TABLES, type TableKind } from '../../setup/table-permissions.ts';

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

function filledIn(statement: PolicyStatement): string {
  const encoded = (_: string, name: string): string => `\${jsonencode(${name})}`;
  return JSON.stringify(statement)
    .replace(/\["@\[([\w.]+)\]"\]/g, encoded)
    .replace(/"@\(([\w.]+)\)"/g, encoded);
}
