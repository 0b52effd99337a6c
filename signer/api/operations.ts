// The closed vocabularies of authorization (specification/authorization.md#scopes, #operations): what rules, documents
// and the operator know of an operation. What it signs is its row in signer/operations/rows.ts, which the type demands.

interface OperationEntry {
  /** For docs/reference/authorization.md. */
  readonly is: string;
  /** What its audit line says of its place on the chain: a place (operations/row.ts), member by member. */
  readonly states: readonly ('slot' | 'epoch' | 'sourceEpoch' | 'targetEpoch')[];
  /** What a rule may ask of its payment (specification/authorization.md#payments). */
  readonly conditions?: readonly Condition[];
}

const CONDITIONS = ['fee_recipients', 'max_gas_limit', 'builders', 'builder_indices', 'only_for_own_blocks'] as const;

export type Condition = (typeof CONDITIONS)[number];

/** By the name that a rule has for it. Some have other names on the wire too: they are authorised as these. */
export const OPERATION_ENTRIES = {
  AGGREGATION_SLOT: { is: 'proof of being an aggregator of a slot', states: ['slot'] },
  AGGREGATE_AND_PROOF: {
    is: 'aggregate of votes; AGGREGATE_AND_PROOF_V2 on the wire is this too',
    states: ['slot'],
  },
  ATTESTATION: { is: 'vote; checked by slashing protection', states: ['slot', 'sourceEpoch', 'targetEpoch'] },
  BLOCK_V2: { is: 'block; checked by slashing protection', states: ['slot'] },
  BUILDER_REQUEST_AUTH: {
    is: 'authorization of requests to a builder (Gloas)',
    states: ['slot'],
    conditions: ['builders'],
  },
  EXECUTION_PAYLOAD_BID: {
    is: 'bid of a builder, which commits its money; needs `signing.builder`',
    states: ['slot'],
  },
  EXECUTION_PAYLOAD_ENVELOPE: {
    is: 'execution payload that a block committed to (Gloas)',
    states: ['slot'],
    conditions: ['fee_recipients', 'max_gas_limit', 'builder_indices', 'only_for_own_blocks'],
  },
  PAYLOAD_ATTESTATION_MESSAGE: { is: 'vote on whether a payload came in time (Gloas)', states: ['slot'] },
  PROPOSER_PREFERENCES: {
    is: 'fee recipient and gas limit of a proposer (Gloas)',
    states: ['slot'],
    conditions: ['fee_recipients', 'max_gas_limit'],
  },
  RANDAO_REVEAL: { is: 'randomness of a block', states: ['epoch'] },
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: { is: 'aggregate of sync committee messages', states: ['slot'] },
  SYNC_COMMITTEE_MESSAGE: { is: 'vote of a sync committee', states: ['slot'] },
  SYNC_COMMITTEE_SELECTION_PROOF: { is: 'proof of being an aggregator of a sync committee', states: ['slot'] },
  VALIDATOR_REGISTRATION: {
    is: 'fee recipient and gas limit told to builders (before Gloas)',
    states: [],
    conditions: ['fee_recipients', 'max_gas_limit'],
  },
  VOLUNTARY_EXIT: { is: 'exit of a validator, which cannot be undone', states: ['epoch'] },
} as const satisfies Readonly<Record<string, OperationEntry>>;

type Entries = typeof OPERATION_ENTRIES;

/** What a policy rule names. */
export type Operation = keyof Entries;

export type PaymentOperation = {
  [Name in Operation]: Entries[Name] extends { readonly conditions: unknown } ? Name : never;
}[Operation];

export const OPERATIONS = Object.keys(OPERATION_ENTRIES) as [Operation, ...Operation[]];

export const PAYMENT_OPERATIONS = OPERATIONS.filter(
  (operation): operation is PaymentOperation => 'conditions' in OPERATION_ENTRIES[operation],
);

export function conditionsOf(rule: { readonly [Name in Condition]?: unknown }): readonly Condition[] {
  return CONDITIONS.filter((condition) => rule[condition] !== undefined);
}

export function operationsOfConditions(conditions: readonly Condition[]): readonly PaymentOperation[] {
  return PAYMENT_OPERATIONS.filter((operation) => {
    const possible: readonly Condition[] = OPERATION_ENTRIES[operation].conditions;
    return conditions.every((condition) => possible.includes(condition));
  });
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
