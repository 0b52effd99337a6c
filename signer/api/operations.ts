// The closed vocabularies of authorization (specification/authorization.md#scopes, #operations).

export const OPERATIONS = [
  'AGGREGATION_SLOT',
  'AGGREGATE_AND_PROOF',
  'ATTESTATION',
  'BLOCK_V2',
  'BUILDER_REQUEST_AUTH',
  'EXECUTION_PAYLOAD_BID',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'PAYLOAD_ATTESTATION_MESSAGE',
  'PROPOSER_PREFERENCES',
  'RANDAO_REVEAL',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
  'VALIDATOR_REGISTRATION',
  'VOLUNTARY_EXIT',
] as const;

/** What a policy rule names. Some have other names on the wire too (sign-request.ts): they are authorised as these. */
export type Operation = (typeof OPERATIONS)[number];

export function unreachable(request: never): never {
  throw new Error(`unknown operation: ${(request as { readonly operation: string }).operation}`);
}

/** specification/authorization.md#payments */
export const PAYMENT_OPERATIONS = [
  'BUILDER_REQUEST_AUTH',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'PROPOSER_PREFERENCES',
  'VALIDATOR_REGISTRATION',
] as const satisfies readonly Operation[];

export type PaymentOperation = (typeof PAYMENT_OPERATIONS)[number];

const PAID = ['EXECUTION_PAYLOAD_ENVELOPE', 'PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION'] as const;

export const CONDITION_OPERATIONS = {
  fee_recipients: PAID,
  max_gas_limit: PAID,
  builders: ['BUILDER_REQUEST_AUTH'],
  builder_indices: ['EXECUTION_PAYLOAD_ENVELOPE'],
  only_for_own_blocks: ['EXECUTION_PAYLOAD_ENVELOPE'],
} as const satisfies Readonly<Record<string, readonly PaymentOperation[]>>;

export type Condition = keyof typeof CONDITION_OPERATIONS;

const CONDITIONS = Object.keys(CONDITION_OPERATIONS) as Condition[];

export function conditionsOf(rule: { readonly [Name in Condition]?: unknown }): readonly Condition[] {
  return CONDITIONS.filter((condition) => rule[condition] !== undefined);
}

export function operationsOfConditions(conditions: readonly Condition[]): readonly PaymentOperation[] {
  return PAYMENT_OPERATIONS.filter((operation) =>
    conditions.every((condition) => (CONDITION_OPERATIONS[condition] as readonly Operation[]).includes(operation)),
  );
}

export const SCOPES = [
  'sign',
  'public_keys',
  'list_keys',
  'import_keystores',
  'delete_keys',
  'chamber_keys_generate',
  'chamber_keys_generate_bls',
  'chamber_keys_deposit_data',
  'chamber_keys_import',
  'chamber_keys_list',
  'chamber_keys_patch',
  'chamber_keys_delete',
  'chamber_seal',
  'chamber_status',
  'slashing_protection',
  'receipts',
  'reload',
] as const;

export type Scope = (typeof SCOPES)[number];
