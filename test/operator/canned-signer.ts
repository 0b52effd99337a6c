// The answers behind the golden transcripts: a signer with two policies and three tokens whose state does not change,
// so that each line of a transcript stands for itself. Tokens decide what is refused.

import type { CreatedToken } from '../../signer/api/auth.ts';
import type { SealAnswer } from '../../signer/api/chamber.ts';
import type { ErrorReason } from '../../signer/api/errors.ts';
import type { Health } from '../../signer/api/health.ts';
import type {
  KeyDepositDataAnswer,
  KeyGenerateAnswer,
  KeyGenerateBlsAnswer,
  KeyListAnswer,
} from '../../signer/api/key-answers.ts';
import {
  CLIENT,
  DEPOSIT,
  IMPORTED,
  INTERCHANGE,
  KEY,
  KEYS,
  LATCHED,
  MONITORING,
  ROOT,
  STATELESS,
  STATUS,
  VALIDATOR_CLIENT,
  WRITTEN,
} from './canned-records.ts';
import { type Answerer, answerJson, answerRefusal } from './fixture-signer.ts';

/** What the holder of each token gets, whatever is asked. */
const REFUSED: Readonly<Record<string, ErrorReason>> = {
  'Bearer sr_client_sealed': 'sealed',
  'Bearer sr_client_auth_sealed': 'auth_sealed',
  'Bearer sr_client_unknown': 'invalid_token',
  'Bearer sr_client_denied': 'denied',
  'Bearer sr_client_stale': 'state_stale',
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
      return [200, { keys: KEYS.slice(0, 1), next_cursor: 'table.1' } satisfies KeyListAnswer];
    case 'GET /api/v1/chamber/keys?limit=1000&cursor=table.1':
      return [200, { keys: KEYS.slice(1), next_cursor: null } satisfies KeyListAnswer];
    case 'GET /api/v1/chamber/keys?limit=1000&status=inactive&source=dynamodb':
      return [200, { keys: [], next_cursor: null } satisfies KeyListAnswer];
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
      const lifetimeMs = typeof ttl_seconds === 'number' ? ttl_seconds * 1000 : undefined;
      const created = Date.parse(CLIENT.created_at);
      const expires_at = lifetimeMs === undefined ? null : new Date(created + lifetimeMs).toISOString();
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
