// The closed vocabularies of authorization: signing operations and scopes (specification/authorization.md#scopes,
// #operations).

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

/**
 * The messages that state where a proposer is paid and how much gas its block may use
 * (specification/authorization.md#payments).
 */
export const PAYMENT_OPERATIONS = [
  'PROPOSER_PREFERENCES',
  'VALIDATOR_REGISTRATION',
] as const satisfies readonly Operation[];

export type PaymentOperation = (typeof PAYMENT_OPERATIONS)[number];

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
  'reload',
] as const;

export type Scope = (typeof SCOPES)[number];
