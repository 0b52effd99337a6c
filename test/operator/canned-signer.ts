// The answers behind the golden transcripts: a signer with two policies and three tokens whose state does not change,
// so that each line of a transcript stands for itself. Tokens decide what is refused.

import type { CreatedToken, PolicyRecord, TokenRecord } from '../../enclave/api/auth.ts';
import type { ChamberStatus, SealAnswer } from '../../enclave/api/chamber.ts';
import type { ErrorReason } from '../../enclave/api/errors.ts';
import type { Health } from '../../enclave/api/health.ts';
import type {
  DepositData,
  KeyDepositDataAnswer,
  KeyGenerateAnswer,
  KeyGenerateBlsAnswer,
  KeyList,
  KeyRecord,
} from '../../enclave/api/keys.ts';
import type { SlashingImportAnswer } from '../../enclave/api/slashing-protection.ts';
import { type Answerer, answerJson, answerRefusal } from './fixture-signer.ts';

/** What the holder of each token gets, whatever is asked. */
const REFUSED: Readonly<Record<string, ErrorReason>> = {
  'Bearer sr_client_sealed': 'sealed',
  'Bearer sr_client_auth_sealed': 'auth_sealed',
  'Bearer sr_client_unknown': 'invalid_token',
  'Bearer sr_client_denied': 'denied',
  'Bearer sr_client_stale': 'state_stale',
};

const WRITTEN = '2026-03-01T08:00:00.000Z';
const KEY = `0x${'a1'.repeat(48)}`;
const times = { created_at: WRITTEN, updated_at: WRITTEN };

const VALIDATOR_CLIENT: PolicyRecord = {
  name: 'validator-client',
  rules: [
    { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY, `0x${'b2'.repeat(48)}`] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
  ],
  revision: 3,
  ...times,
};
const MONITORING: PolicyRecord = {
  name: 'monitoring',
  rules: [{ effect: 'allow', scopes: ['public_keys', 'list_keys', 'chamber_status'] }],
  revision: 4,
  ...times,
};

const CLIENT: TokenRecord = {
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
const ROOT: TokenRecord = {
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

const STATUS: ChamberStatus = {
  state: 'Unsealed',
  custody: {
    generation: 2,
    threshold: 2,
    keys_reachable: 2,
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
  latch: null,
  state_watcher: { stale: false, age_seconds: 0.4050903900000001 },
  keys: [
    { source: 'filesystem', status: 'active', count: 12 },
    { source: 'dynamodb', status: 'active', count: 98_304 },
    { source: 'dynamodb', status: 'inactive', count: 7 },
  ],
  memory: { mlock: 'best_effort', unlocked_keys: 17 },
  slashing: {
    backend: 'postgres',
    status: 'up',
    since: WRITTEN,
    store: '0a1b2c3d4e5f60718293a4b5c6d7e8f9',
    bound: true,
    jumped_at_boot: { slot: 11_800_000, source_epoch: 368_749, target_epoch: 368_750 },
    warning: 'the parent holds the tables. When other enclaves sign the same keys over the same tables, both may sign',
  },
  network: 'mainnet',
  version: '0.1.0',
  uptime_seconds: 273_812,
  tee: {
    platform: 'nitro',
    measurements: { 0: 'aa'.repeat(48), 1: 'bb'.repeat(48), 2: 'cc'.repeat(48) },
    configuration_digest: 'dd'.repeat(48),
  },
};

/** Without signer state, sealed by nobody, with nothing loaded. */
const STATELESS: ChamberStatus = {
  ...STATUS,
  custody: null,
  state_watcher: null,
  keys: [],
  memory: { mlock: 'required', unlocked_keys: 0 },
  slashing: {
    backend: 'sqlite',
    status: 'down',
    since: WRITTEN,
    store: null,
    bound: null,
    jumped_at_boot: null,
    warning: null,
  },
  uptime_seconds: 0,
  tee: { platform: 'off', measurements: {}, configuration_digest: null },
};

const LATCHED: ChamberStatus = {
  ...STATELESS,
  state: 'Sealed',
  custody: STATUS.custody,
  latch: { sealed_at: WRITTEN, reason: 'incident 42', accessor: ROOT.accessor },
  state_watcher: { stale: true, age_seconds: 61.2 },
};

const IMPORTED: SlashingImportAnswer = {
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
const INTERCHANGE = `{"metadata":{"interchange_format_version":"5","genesis_validators_root":"0x${'04'.repeat(32)}"},"data":[]}`;

const KEYS: readonly KeyRecord[] = [
  {
    pubkey: KEY,
    source: 'dynamodb',
    sources: ['filesystem', 'dynamodb'],
    status: 'active',
    loaded: true,
    ...times,
    has_backup: true,
    has_deposit_data: true,
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
  },
];
const DEPOSIT: DepositData = {
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

/** The key routes. Keys that begin with 0xee fail. */
function keyAnswer(method: string, path: string, body: string): readonly [status: number, answer: unknown] | undefined {
  const request = body === '' ? {} : (JSON.parse(body) as Record<string, unknown[]>);
  const outcome = (pubkey: string, status: string) =>
    pubkey.startsWith('0xee')
      ? { pubkey, status: 'error', message: 'a key of a key file: \u001b[2Jdelete the file' }
      : { pubkey, status };
  switch (`${method} ${path}`) {
    case 'GET /api/v1/chamber/keys?limit=1000':
      return [200, { keys: KEYS.slice(0, 1), next_cursor: 'table.1' } satisfies KeyList];
    case 'GET /api/v1/chamber/keys?limit=1000&cursor=table.1':
      return [200, { keys: KEYS.slice(1), next_cursor: null } satisfies KeyList];
    case 'GET /api/v1/chamber/keys?limit=1000&status=inactive&source=dynamodb':
      return [200, { keys: [], next_cursor: null } satisfies KeyList];
    case 'POST /api/v1/chamber/keys':
      return [200, { data: (request['passwords'] ?? []).map((password) => outcome(String(password), 'imported')) }];
    case 'PATCH /api/v1/chamber/keys':
      return [200, { data: (request['keys'] as { pubkey: string }[]).map(({ pubkey }) => outcome(pubkey, 'updated')) }];
    case 'DELETE /api/v1/chamber/keys':
      return [
        200,
        {
          data: (request['pubkeys'] as string[]).map((pubkey) => outcome(pubkey, 'deleted')),
          slashing_protection: {
            ...(JSON.parse(INTERCHANGE) as object),
            data: (request['pubkeys'] as string[]).map((pubkey) => ({ pubkey: pubkey.slice(0, 6) })),
          },
        },
      ];
    case 'POST /api/v1/chamber/keys/generate':
      return [
        201,
        { keys: [{ pubkey: KEY, deposit_data: DEPOSIT, backup: 'AGE FILE\n' }] } satisfies KeyGenerateAnswer,
      ];
    case 'POST /api/v1/chamber/keys/generate-keys':
      return [201, { keys: [{ pubkey: KEY, backup: 'AGE FILE\n' }] } satisfies KeyGenerateBlsAnswer];
    case 'POST /api/v1/chamber/keys/deposit-data':
      return [
        200,
        {
          data: (request['pubkeys'] as string[]).map((pubkey) =>
            pubkey === KEY
              ? { pubkey, status: 'created', deposit_data: DEPOSIT }
              : { pubkey, status: 'conflict', deposit_data: DEPOSIT },
          ),
        } satisfies KeyDepositDataAnswer,
      ];
    default:
      return undefined;
  }
}

const SEALED_HEALTH: Health = {
  status: 'DOWN',
  checks: [
    {
      id: 'chamber',
      status: 'DOWN',
      detail: 'the chamber is sealed',
      sealed_at: WRITTEN,
      reason: 'incident 42 \u001b[2J',
      accessor: ROOT.accessor,
    },
    { id: 'anti_slashing', status: 'NOT_OPENED', detail: 'the signer started sealed' },
    { id: 'state_watcher', status: 'UP' },
    { id: 'keys', status: 'DOWN', detail: 'the signer is sealed and holds no keys' },
  ],
  outcome: 'DOWN',
};

export const cannedSigner: Answerer = ({ method, path, authorization, body }, response) => {
  if (path === '/healthcheck') return answerJson(response, 503, SEALED_HEALTH);
  if (authorization === undefined) return answerRefusal(response, 'missing_credentials');
  const refused = REFUSED[authorization];
  if (refused !== undefined) return answerRefusal(response, refused);
  const keys = keyAnswer(method, path, body);
  if (keys !== undefined) return answerJson(response, ...keys);
  const request = body === '' || method !== 'POST' ? {} : (JSON.parse(body) as Record<string, unknown>);
  const ok = (value: unknown): void => answerJson(response, 200, value);
  switch (`${method} ${path}`) {
    case 'GET /api/v1/chamber/status':
      if (authorization.endsWith('stateless')) return ok(STATELESS);
      return ok(authorization.endsWith('latched') ? LATCHED : STATUS);
    case 'POST /api/v1/chamber/seal':
      return ok({
        state: 'Sealed',
        sealed_at: WRITTEN,
        reason: (request['reason'] as string | undefined) ?? null,
      } satisfies SealAnswer);
    case 'GET /api/v1/auth/policies':
      return ok({ policies: [MONITORING, VALIDATOR_CLIENT] });
    case 'POST /api/v1/auth/policies':
      if (request['name'] === 'monitoring') return answerRefusal(response, 'already_exists');
      return answerJson(response, 201, { ...MONITORING, ...request, revision: 6 });
    case 'PUT /api/v1/auth/policies/monitoring':
      return ok({ ...MONITORING, ...(JSON.parse(body) as object), revision: 7 });
    case 'GET /api/v1/auth/policies/validator-client':
      return ok(VALIDATOR_CLIENT);
    case 'DELETE /api/v1/auth/policies/monitoring':
    case `DELETE /api/v1/auth/tokens/${CLIENT.accessor}`:
      return void response.writeHead(204).end();
    case 'DELETE /api/v1/auth/policies/validator-client':
      return answerRefusal(response, 'policy_in_use');
    case 'GET /api/v1/auth/tokens':
      return ok({ tokens: [ROOT, CLIENT] });
    case 'POST /api/v1/auth/tokens': {
      const { ttl_seconds, management, ...stated } = request;
      const kind = management === true ? 'management' : 'client';
      const expires_at = ttl_seconds === undefined ? null : '2026-03-01T09:00:00.000Z';
      const token = `sr_${kind === 'client' ? 'client' : 'mgmt'}_${'T'.repeat(43)}`;
      const record = { ...CLIENT, description: null, ...stated, kind, expires_at, revision: 8, token };
      return answerJson(response, 201, record as CreatedToken);
    }
    case `GET /api/v1/auth/tokens/${CLIENT.accessor}`:
      return ok(CLIENT);
    case 'GET /api/v1/chamber/slashing-protection':
    case `GET /api/v1/chamber/slashing-protection?pubkeys=${KEY}`:
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(INTERCHANGE);
    case 'POST /api/v1/chamber/slashing-protection':
      if (!('metadata' in request)) {
        return answerRefusal(response, 'malformed_body', 'nothing was imported: data[1]: the pubkey is missing');
      }
      return ok(IMPORTED);
    default:
      return answerRefusal(response, 'not_found');
  }
};
