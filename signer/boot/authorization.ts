// Step "authorization": who may do what, from the configuration (stateless) or from the signer-state table (stateful).

import { clockBy, type SignerTime } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { AuthHeadRejected } from '../auth/stateful/load.ts';
import { tokensWithoutLifetime } from '../auth/stateful/snapshot.ts';
import { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import { createStaticAuthenticator, type DeclareClients, type StaticAuthOptions } from '../auth/static.ts';
import { patiently } from '../chamber/startup-failures.ts';
import type { Config } from '../config/options.ts';
import type { Custody } from './custody.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface Authorization {
  readonly authenticator: Authenticator;
  readonly stateful: StatefulAuthenticator | undefined;
  /** Undefined in the stateful mode. @throws Error as the step does */
  readonly replaceTokens: ((config: AuthorizationConfig) => void) | undefined;
}

interface AuthorizationConfig {
  readonly static_auth: Config['static_auth'];
  readonly tls: Pick<Config['tls'], 'known_clients'>;
}

export type ReadKnownClients = (clients: Config['tls']['known_clients']) => DeclareClients;

interface AuthorizationParts {
  readonly custody: Custody | undefined;
  readonly readKnownClients: ReadKnownClients | undefined;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  readonly time: SignerTime;
}

export async function openAuthorization(
  config: AuthorizationConfig,
  { custody, readKnownClients, telemetry, time }: AuthorizationParts,
  world: World,
): Promise<Authorization> {
  if (custody === undefined) {
    const optionsOf = (given: AuthorizationConfig) => declared(given, readKnownClients);
    const authenticator = withDeclared(config, optionsOf, (options) =>
      createStaticAuthenticator(options, () => world.logger.module('auth').warn({}, IGNORED)),
    );
    const replaceTokens = (other: AuthorizationConfig) => withDeclared(other, optionsOf, authenticator.replace);
    return { authenticator, stateful: undefined, replaceTokens };
  }
  const stateful = await openStateful(custody, telemetry, { ...world, clock: clockBy(time, world.clock) });
  return { authenticator: stateful, stateful, replaceTokens: undefined };
}

/** The secrets of the tokens are wiped, also when a file of clients cannot be used. */
function withDeclared<Result>(
  config: AuthorizationConfig,
  optionsOf: (config: AuthorizationConfig) => StaticAuthOptions,
  use: (options: StaticAuthOptions) => Result,
): Result {
  try {
    return use(optionsOf(config));
  } finally {
    for (const { secret } of config.static_auth.tokens) secret.wipe();
  }
}

function declared(
  { static_auth, tls }: AuthorizationConfig,
  readKnownClients: ReadKnownClients | undefined,
): StaticAuthOptions {
  const { policies, anonymous, tokens } = static_auth;
  return {
    policies,
    anonymousPolicies: anonymous.policies,
    tokens: tokens.map((token) => ({
      secret: token.secret.reveal(),
      policies: token.policies,
      name: token.name,
      boundCidrs: token.bound_cidrs,
    })),
    clients: tls.known_clients.length === 0 ? undefined : readKnownClients?.(tls.known_clients),
  };
}

const IGNORED =
  'a request has a token, and tokens are not looked at: no token and no client is declared, and everybody may do what ' +
  'static_auth.anonymous may. To tell callers apart, declare static_auth.tokens';

async function openStateful(
  { chamber, table }: Custody,
  { metrics }: Pick<Telemetry, 'metrics'>,
  { clock, logger, enclave }: World,
): Promise<StatefulAuthenticator> {
  const sealed = chamber.state === 'Sealed';
  const key = (purpose: 'authRowHmac' | 'tokenHmac') => (sealed ? Buffer.alloc(32) : chamber.masterKey.subKey(purpose));
  const stateful = new StatefulAuthenticator(
    { rows: key('authRowHmac'), tokens: key('tokenHmac') },
    {
      state: table,
      clock,
      log: logger.module('auth'),
      onRowRejected: (row) => metrics.authRowsRejected.inc({ row }),
      onHeadRejected: (problem) => metrics.authHeadsRejected.inc({ problem }),
    },
  );
  chamber.onSealed(() => stateful.seal());
  if (sealed) return stateful;
  await patiently(table, () => stateful.refresh().catch(explain));
  if (enclave !== undefined) warnOfLastingTokens(stateful, logger.module('auth'));
  return stateful;
}

const MAX_NAMED_TOKENS = 10;

/** When an older state is put back around a restart, only its lifetime ends a token that was revoked since. */
function warnOfLastingTokens({ snapshot }: StatefulAuthenticator, log: Log): void {
  const tokens = tokensWithoutLifetime(snapshot);
  if (tokens.length === 0) return;
  const accessors = tokens.slice(0, MAX_NAMED_TOKENS).map(({ accessor }) => accessor);
  log.warn({ tokens: tokens.length, accessors }, LASTING_TOKENS);
}

const LASTING_TOKENS =
  'tokens have no lifetime: whoever puts an older state table back around a restart brings a revoked one back for good. ' +
  'Replace them by tokens with a ttl (docs/guides/authorization.md)';

function explain(error: unknown): never {
  if (!(error instanceof AuthHeadRejected)) throw error;
  throw new Error(
    `the row AUTH_REVISION is ${error.problem.replace('_', ' ')}: restore it from a point-in-time recovery of the table; or, to keep nothing but a new root token, ` +
      'delete ROOT_TOKEN_BOOTSTRAP and start again',
    { cause: error },
  );
}
