// The records of the canned signer: two policies, three tokens, its status in three states, and its keys.

import type { PolicyRecord, TokenRecord } from '../../signer/api/auth.ts';
import type { ChamberStatus } from '../../signer/api/chamber.ts';
import type { DepositData, KeyRecord } from '../../signer/api/key-answers.ts';
import type { SlashingImportAnswer } from '../../signer/api/slashing-protection.ts';

export const WRITTEN = '2026-03-01T08:00:00.000Z';
export const KEY = `0x${'a1'.repeat(48)}`;
const times = { created_at: WRITTEN, updated_at: WRITTEN };

export const VALIDATOR_CLIENT: PolicyRecord = {
  name: 'validator-client',
  rules: [
    { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY, `0x${'b2'.repeat(48)}`] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
  ],
  revision: 3,
  ...times,
};
export const MONITORING: PolicyRecord = {
  name: 'monitoring',
  rules: [{ effect: 'allow', scopes: ['public_keys', 'list_keys', 'chamber_status'] }],
  revision: 4,
  ...times,
};

export const CLIENT: TokenRecord = {
  accessor: 'acc_000102030405060708090a0b0c0d0e0f',
  kind: 'client',
  policies: ['validator-client', 'monitoring', 'a-policy-whose-name-is-long-enough-to-wrap'],
  bound_cidrs: ['10.0.4.0/24', '2001:db8::/32'],
  // An escape sequence and a right-to-left override: whoever may create tokens must not be able to rewrite a terminal.
  description: 'validator 7 \u001b[2J\u202egnp',
  created_at: WRITTEN,
  expires_at: '2026-06-01T08:00:00.000Z',
  root: false,
  revision: 5,
};
export const ROOT: TokenRecord = {
  ...CLIENT,
  accessor: 'acc_f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff',
  kind: 'management',
  policies: [],
  bound_cidrs: [],
  description: null,
  expires_at: null,
  root: true,
  revision: 1,
};

const DEPLOYMENT = { network: `0x${'4b'.repeat(32)}`, id: 'strongroom-state' };

export const STATUS: ChamberStatus = {
  state: 'Unsealed',
  custody: {
    generation: 2,
    threshold: 2,
    keys_reachable: 2,
    master_key: {
      made_by_this_start: false,
      record: '99'.repeat(48),
      links: [
        {
          ...{ purpose: 'made', counter: 1, generation: 1, ceremony: '11'.repeat(48), record: '88'.repeat(48) },
          ...{ deployment: DEPLOYMENT, origin: null, previous: null, made_at: '2026-01-05T10:00:00.000Z' },
          module_id: 'i-0123456789abcdef0-enc0123456789abcdef',
          measurements: { 0: 'a0'.repeat(48), 1: 'b0'.repeat(48), 2: 'c0'.repeat(48), 17: 'd0'.repeat(48) },
          document: 'AAAA',
        },
        {
          ...{ purpose: 'wrapped', counter: 2, generation: 2, ceremony: '22'.repeat(48), record: '99'.repeat(48) },
          ...{ deployment: DEPLOYMENT, origin: '77'.repeat(48), previous: '77'.repeat(48), made_at: WRITTEN },
          module_id: 'i-0123456789abcdef0-enc0123456789abcde0',
          measurements: { 0: 'aa'.repeat(48), 1: 'bb'.repeat(48), 2: 'cc'.repeat(48), 17: 'ee'.repeat(48) },
          document: 'AAAA',
        },
      ],
    },
    root_token: {
      ...{ purpose: 'root_token', deployment: DEPLOYMENT, generation: 1, ceremony: '11'.repeat(48) },
      ...{ origin: '77'.repeat(48), content: '66'.repeat(48), made_at: '2026-01-05T10:00:01.000Z' },
      module_id: 'i-0123456789abcdef0-enc0123456789abcdef',
      measurements: { 0: 'a0'.repeat(48), 1: 'b0'.repeat(48), 2: 'c0'.repeat(48), 17: 'd0'.repeat(48) },
      document: 'AAAA',
    },
    seal_removal: null,
    keys: [
      { arns: ['arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-000000000001'], status: 'reachable' },
      {
        arns: [
          'arn:aws:kms:eu-central-1:111122223333:key/mrk-00000000000000000000000000000002',
          'arn:aws:kms:eu-west-1:111122223333:key/mrk-00000000000000000000000000000002',
        ],
        status: 'reachable',
      },
      { arns: ['arn:aws:kms:us-east-1:111122223333:key/00000000-0000-4000-8000-000000000003'], status: 'disabled' },
    ],
  },
  hindrance: null,
  latch: null,
  state_watcher: { stale: false, age_seconds: 0.4050903900000001 },
  keys: [
    { source: 'filesystem', status: 'active', count: 12 },
    { source: 'dynamodb', status: 'active', count: 98_304 },
    { source: 'dynamodb', status: 'inactive', count: 7 },
  ],
  keys_loading: null,
  memory: { mlock: 'best_effort', unlocked_keys: 17 },
  slashing: {
    backend: 'postgres',
    status: 'up',
    since: WRITTEN,
    store: '0a1b2c3d4e5f60718293a4b5c6d7e8f9',
    bound: true,
    jumped_at_boot: { slot: 11_800_000, source_epoch: 368_749, target_epoch: 368_750 },
    trouble: null,
    keys_ahead: [],
    warning: 'the parent holds the tables. When other enclaves sign the same keys over the same tables, both may sign',
  },
  network: 'mainnet',
  version: '0.1.0',
  uptime_seconds: 273_812,
  receipts: { uncovered_entries: 12, uncovered_seconds: 31, lost: 0 },
  tee: {
    platform: 'nitro',
    measurements: { 0: 'aa'.repeat(48), 1: 'bb'.repeat(48), 2: 'cc'.repeat(48) },
    configuration_digest: 'dd'.repeat(48),
    parent_writes_tables: false,
  },
};

/** Without signer state, sealed by nobody, whose first keystores are being opened. */
export const STATELESS: ChamberStatus = {
  ...STATUS,
  custody: null,
  state_watcher: null,
  keys: [],
  keys_loading: { done: 43, total: 10_000, remaining_seconds: 1388.2 },
  memory: { mlock: 'required', unlocked_keys: 0 },
  slashing: {
    backend: 'sqlite',
    status: 'down',
    since: WRITTEN,
    store: null,
    bound: null,
    jumped_at_boot: null,
    trouble: null,
    keys_ahead: [],
    warning: null,
  },
  uptime_seconds: 0,
  receipts: null,
  tee: { platform: 'off', measurements: {}, configuration_digest: null, parent_writes_tables: false },
};

export const LATCHED: ChamberStatus = {
  ...STATELESS,
  state: 'Sealed',
  hindrance: 'the signer is sealed',
  custody: STATUS.custody,
  latch: { sealed_at: WRITTEN, reason: 'incident 42', accessor: ROOT.accessor },
  state_watcher: { stale: true, age_seconds: 61.2 },
};

export const IMPORTED: SlashingImportAnswer = {
  validators: 2,
  blocks: 3,
  attestations: 5,
  already_present: 1,
  conflicts: 3,
  conflicting: [
    { public_key: KEY, slot: 81952 },
    { public_key: KEY, source_epoch: 2560, target_epoch: 2561 },
  ],
};
export const INTERCHANGE = `{"metadata":{"interchange_format_version":"5","genesis_validators_root":"0x${'04'.repeat(32)}"},"data":[]}`;

export const KEYS: readonly KeyRecord[] = [
  {
    pubkey: KEY,
    source: 'dynamodb',
    sources: ['filesystem', 'dynamodb'],
    status: 'active',
    loaded: true,
    ...times,
    has_backup: true,
    has_deposit_data: true,
    distributed: null,
  },
  {
    pubkey: `0x${'b2'.repeat(48)}`,
    source: 'memory',
    sources: ['memory'],
    status: 'active',
    loaded: true,
    ...times,
    has_backup: false,
    has_deposit_data: false,
    distributed: { participant_id: '2', signing_threshold: '3', participants: '4' },
  },
];
export const DEPOSIT: DepositData = {
  pubkey: KEY.slice(2),
  withdrawal_credentials: `01${'00'.repeat(11)}${'52'.repeat(20)}`,
  amount: 32_000_000_000,
  signature: 'cc'.repeat(96),
  deposit_message_root: 'dd'.repeat(32),
  deposit_data_root: 'ee'.repeat(32),
  fork_version: '00000000',
  network_name: 'mainnet',
  deposit_cli_version: '2.8.0',
};
