// Step "authorization": who may do what, from the configuration (stateless) or from the signer-state table under the
// chamber's master key (stateful). The two modes exclude each other (specification/operating.md#startup-failures, 1).

import type { Log } from '../../observe/log.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { AuthHeadRejected } from '../auth/stateful/load.ts';
import { tokensWithoutLifetime } from '../auth/stateful/snapshot.ts';
import { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import { createStaticAuthenticator, type StaticAuthOptions } from '../auth/static.ts';
import { patiently } from '../chamber/startup-failures.ts';
import type { Config } from '../config/options.ts';
import type { Custody } from './custody.ts';
import type { Telemetry } from './telemetry.ts';
import { clockBy, type SignerTime } from './time.ts';
import type { World } from './world.ts';

export interface Authorization {
  readonly authenticator: Authenticator;
  /** The same authenticator, when it is of the stateful mode. */
  readonly stateful: StatefulAuthenticator | undefined;
  /** Put other declared tokens and policies in force; undefined in the stateful mode. @throws Error as the step does */
  readonly replaceTokens: ((declared: Config['static_auth']) => void) | undefined;
}

export interface AuthorizationParts {
  /** Undefined without a signer state. */
  readonly custody: Custody | undefined;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  /** What the lifetimes of tokens are judged by. */
  readonly time: SignerTime;
}

/** @throws Error when the state is there and not to be believed, and what to do about it */
export async function openAuthorization(
  config: Config['static_auth'],
  { custody, telemetry, time }: AuthorizationParts,
  world: World,
): Promise<Authorization> {
  if (custody === undefined) {
    const authenticator = createStaticAuthenticator(declared(config));
    return { authenticator, stateful: undefined, replaceTokens: (other) => authenticator.replace(declared(other)) };
  }
  const stateful = await openStateful(custody, telemetry, { ...world, clock: clockBy(time, world.clock) });
  return { authenticator: stateful, stateful, replaceTokens: undefined };
}

function declared({ policies, anonymous, tokens }: Config['static_auth']): StaticAuthOptions {
  return {
    policies,
    anonymousPolicies: anonymous.policies,
    tokens: tokens.map((token) => ({
      secret: token.secret.reveal(),
      policies: token.policies,
      name: token.name,
      boundCidrs: token.bound_cidrs,
    })),
  };
}

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

/** Named one by one. */
const MAX_NAMED_TOKENS = 10;

/**
 * Whoever holds the tables can put an older state back around a restart: what was revoked since lives again, and only
 * its lifetime ends it.
 */
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
