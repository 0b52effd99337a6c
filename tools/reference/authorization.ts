// docs/reference/authorization.md: scopes with their routes and commands, and operations, for authors of policies.

import { OPERATION_ENTRIES, OPERATIONS, type Operation, SCOPES, type Scope } from '../../signer/api/operations.ts';
import { SCOPE_CATALOGUE } from '../../signer/api/scope-catalogue.ts';
import { codes, table } from './markdown.ts';

/** Commands that ask for routes of the scope; a test holds them against the command tree. */
export const SCOPE_COMMANDS: Readonly<Partial<Record<Scope, readonly string[]>>> = {
  sign: ['tunnel'],
  public_keys: ['tunnel'],
  chamber_keys_generate: ['keys generate', 'keys backups'],
  chamber_keys_generate_bls: ['keys generate', 'keys backups'],
  chamber_keys_deposit_data: ['keys deposit-data'],
  chamber_keys_import: ['keys import'],
  chamber_keys_list: ['keys list', 'top'],
  chamber_keys_patch: ['keys activate', 'keys deactivate'],
  chamber_keys_delete: ['keys delete'],
  chamber_seal: ['seal'],
  chamber_status: ['status', 'top', 'doctor', 'recover'],
  slashing_protection: ['slashing export', 'slashing import'],
  receipts: ['receipts fetch', 'receipts verify'],
};

export function authorizationReference(): string {
  return `# Scopes and operations

Generated from the source by \`make docs\`. What rules are and how they decide: [guide](../guides/authorization.md).

## Scopes

A rule that leaves \`scopes\` out names all of these, so \`{"effect":"allow"}\` lets its holder do everything below. Policies and tokens are no scope:
\`/api/v1/auth/…\` and \`operator auth …\` need a management token.

Each line has what the scope lets its holder do, its routes, and the operator commands that need it.

${table(SCOPES.map((scope) => [scope, scopeText(scope)]))}

## Operations

What \`operations\` of a rule names: the type of a signing request. Only requests of the scope \`sign\` have one.

${table(OPERATIONS.map((operation) => [operation, described(operation)]))}
`;
}

function scopeText(scope: Scope): string {
  const { lets, routes, orAlso } = SCOPE_CATALOGUE[scope];
  const also = orAlso === undefined ? '' : `; ${orAlso} will do, too`;
  const commands = SCOPE_COMMANDS[scope];
  return `${lets}${also}. ${codes(routes)}${commands === undefined ? '' : `; ${codes(commands)}`}`;
}

function described(operation: Operation): string {
  const { is, conditions = [] }: { readonly is: string; readonly conditions?: readonly string[] } =
    OPERATION_ENTRIES[operation];
  return conditions.length === 0 ? is : `${is}; rules may state ${conditions.map((one) => `\`${one}\``).join(', ')}`;
}
