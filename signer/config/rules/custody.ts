// Rules on the table-backed parts: the key table, the signer state and the custody ceremony that protects both.

import { thresholdIsReachable } from '../../../ceremony/definition.ts';
import { type ConfigRule, when } from './rule.ts';

const NEEDS_TABLE_BACKEND = ['generate', 'generate_keys', 'deposit_data'] as const;

export const CUSTODY_RULES: readonly ConfigRule[] = [
  {
    startupFailure: 4,
    says: '`key_sources.dynamodb` needs its `table`, and `signer_state`, which holds the master key.',
    broken: ({ key_sources }, { isSet }) => [
      ...when(isSet('key_sources.dynamodb') && !isSet('signer_state'), {
        at: 'key_sources.dynamodb',
        problem: 'is set without signer_state',
        remedy: 'set signer_state.backend and signer_state.table',
      }),
      ...when(isSet('key_sources.dynamodb') && key_sources.dynamodb.table === undefined, {
        at: 'key_sources.dynamodb',
        problem: 'names no table',
        remedy: 'set key_sources.dynamodb.table',
      }),
    ],
  },
  {
    says: '`signer_state` needs `backend` and `table`.',
    broken: ({ signer_state }, { isSet }) =>
      (['backend', 'table'] as const).flatMap((member) =>
        when(isSet('signer_state') && signer_state[member] === undefined, {
          at: 'signer_state',
          problem: `is set without ${member}`,
          remedy: `set signer_state.${member}`,
        }),
      ),
  },
  {
    startupFailure: 6,
    says: 'An enclave (an enclave build, or `tee.platform: nitro`) refuses a `ceremony` block; elsewhere `signer_state` needs one.',
    broken: ({ tee }, { isSet, compiledCeremony }) => [
      ...when(isSet('ceremony') && (compiledCeremony !== false || tee.platform === 'nitro'), {
        at: 'ceremony',
        problem: 'is set, and an enclave takes its ceremony from the image only',
        remedy: 'remove it, and build the image with the ceremony',
      }),
      ...when(isSet('signer_state') && !isSet('ceremony') && compiledCeremony === false && tee.platform !== 'nitro', {
        at: 'ceremony',
        problem: 'is missing: the master key of signer_state is made and unsealed under a ceremony',
        remedy: 'describe the custody keys in a ceremony block',
      }),
    ],
  },
  {
    startupFailure: 7,
    says: '`ceremony.kms_threshold` is at most the number of `kms_keys`.',
    broken: ({ ceremony }) =>
      when(ceremony !== undefined && !thresholdIsReachable(ceremony), {
        at: 'ceremony',
        within: ['kms_threshold'],
        problem: 'is greater than the number of kms_keys: the master key could never be unsealed',
        remedy: 'lower it, or add custody keys',
      }),
  },
  {
    says: '`receipts` needs `storage`; `folder` needs `receipts.path`, and `state_table` needs `signer_state`.',
    broken: ({ receipts }, { isSet }) => [
      ...when(isSet('receipts') && receipts.storage === undefined, {
        at: 'receipts',
        problem: 'is set without storage, and no log is kept',
        remedy: 'set receipts.storage, or remove receipts',
      }),
      ...when(receipts.storage === 'folder' && receipts.path === undefined, {
        at: 'receipts.storage',
        problem: 'is folder, and no folder is named',
        remedy: 'set receipts.path',
      }),
      ...when(receipts.storage === 'state_table' && receipts.path !== undefined, {
        at: 'receipts.path',
        problem: 'is set, and the log is kept in the state table',
        remedy: 'remove it, or set receipts.storage: folder',
      }),
      ...when(receipts.storage === 'state_table' && !isSet('signer_state'), {
        at: 'receipts.storage',
        problem: 'is state_table, and there is no signer_state',
        remedy: 'set signer_state.backend and signer_state.table, or receipts.storage: folder',
      }),
    ],
  },
  {
    startupFailure: 10,
    says: '`chamber.keys.generate`, `generate_keys` and `deposit_data` need `key_sources.dynamodb`.',
    broken: ({ chamber }, { isSet }) =>
      NEEDS_TABLE_BACKEND.flatMap((route) =>
        when(chamber.keys[route].enabled && !isSet('key_sources.dynamodb'), {
          at: `chamber.keys.${route}.enabled`,
          problem: 'is true, and there is no table to keep the keys in',
          remedy: 'set key_sources.dynamodb, or false',
        }),
      ),
  },
];
