// Rules for the four holders of tokens that every deployment has, so that no operator falls back on
// `{"effect":"allow"}`. Each preset lists its scopes: none gains a scope that a later version brings.

import { OPERATIONS } from '../signer/api/operations.ts';
import type { Policy } from '../signer/api/policy.ts';

/** Asked for by people, not by a client on duty: leaving the validator set, and spending a builder's money. */
const NO_DUTIES: readonly string[] = ['VOLUNTARY_EXIT', 'EXECUTION_PAYLOAD_BID'];

export const PRESETS = {
  'validator-client': [
    {
      effect: 'allow',
      scopes: ['sign'],
      operations: OPERATIONS.filter((operation) => !NO_DUTIES.includes(operation)),
    },
    { effect: 'allow', scopes: ['public_keys'] },
  ],
  monitoring: [{ effect: 'allow', scopes: ['chamber_status', 'list_keys', 'chamber_keys_list'] }],
  'key-admin': [
    {
      effect: 'allow',
      scopes: [
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
      ],
    },
  ],
  'break-glass': [{ effect: 'allow', scopes: ['chamber_seal', 'chamber_status'] }],
} as const satisfies Readonly<Record<string, Policy['rules']>>;

export interface Payments {
  readonly feeRecipients: readonly string[];
  readonly maxGasLimit: number | undefined;
  readonly builders: readonly string[];
}

/** Rules of their own for the messages that pay, so that the rule for the duties allows none of them. */
export function validatorClientRules({ feeRecipients, maxGasLimit, builders }: Payments): readonly object[] {
  const [duties, ...others] = PRESETS['validator-client'];
  const isPaid = feeRecipients.length > 0 || maxGasLimit !== undefined;
  const held = new Set<string>([
    ...(isPaid ? ['PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION', 'EXECUTION_PAYLOAD_ENVELOPE'] : []),
    ...(builders.length > 0 ? ['BUILDER_REQUEST_AUTH'] : []),
  ]);
  const limits = {
    ...(feeRecipients.length > 0 ? { fee_recipients: feeRecipients } : {}),
    ...(maxGasLimit === undefined ? {} : { max_gas_limit: maxGasLimit }),
  };
  const signs = { effect: 'allow', scopes: ['sign'] };
  return [
    { ...duties, operations: duties.operations.filter((operation) => !held.has(operation)) },
    ...(isPaid
      ? [
          { ...signs, operations: ['PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION'], ...limits },
          { ...signs, ...limits, builder_indices: ['self'], only_for_own_blocks: true },
        ]
      : []),
    ...(builders.length > 0 ? [{ ...signs, builders }] : []),
    ...others,
  ];
}

type PresetName = keyof typeof PRESETS;

export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[];
