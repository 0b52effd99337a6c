// Rules for the four holders of tokens that every deployment has, so that nobody ends with `{"effect":"allow"}`. Each
// names its scopes: a scope that a later version brings is in none of them.

import { OPERATIONS } from '../enclave/api/operations.ts';
import type { Policy } from '../enclave/api/policy.ts';

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

export type PresetName = keyof typeof PRESETS;

export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[];
