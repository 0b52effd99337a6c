// The stateless mode: policies, tokens and known clients of the configuration
// (specification/authorization.md#static-auth). Secrets are digested under a key of this boot and wiped. A reload
// replaces all of it, or nothing.

import { randomBytes } from 'node:crypto';
import type { Policy } from '../api/policy.ts';
import type { ClientCertificate } from '../tls/client-certificate.ts';
import type { Authentication, AuthenticationRefusal, Authenticator, Caller } from './authenticator.ts';
import { anyCidrContains, type Cidr } from './cidr.ts';
import { type CompiledAccess, compilePolicy, joinAccess } from './evaluate.ts';
import { type Credential, tokenDigest } from './tokens.ts';

export interface StaticToken {
  readonly name?: string | undefined;
  /** UTF-8. Wiped by createStaticAuthenticator. */
  readonly secret: Buffer;
  readonly policies: readonly string[];
  /** Empty: from anywhere. */
  readonly boundCidrs: readonly Cidr[];
}

export interface StaticAuthOptions {
  readonly policies: readonly Policy[];
  /** Policies of requests without a token. Empty: such requests get 401. */
  readonly anonymousPolicies: readonly string[];
  readonly tokens: readonly StaticToken[];
  /** Undefined when no client is known by a certificate. */
  readonly clients?: DeclareClients | undefined;
}

/** @throws Error naming the place, when a policy is not declared or two clients are known by the same */
export type DeclareClients = (accessOf: AccessOf) => KnownClients;

export interface KnownClients {
  judge(certificate: ClientCertificate): JudgedClient;
}

/** A caller of the stateless mode. */
export interface BoundCaller {
  readonly caller: Caller;
  /** Empty: from anywhere. */
  readonly boundCidrs: readonly Cidr[];
}

export type JudgedClient =
  | { readonly kind: 'known'; readonly bound: BoundCaller }
  | { readonly kind: 'refused'; readonly reason: AuthenticationRefusal };

const DIGEST_KEY_BYTES = 32;

export interface StaticAuthenticator extends Authenticator {
  /** Also for requests under way. @throws Error as createStaticAuthenticator; then everything stays as it was */
  replace(options: StaticAuthOptions): void;
}

/**
 * @param onIgnored called once, for the first credential that says nothing (`tellsNobodyApart`)
 * @throws Error, a startup failure, naming the place in the configuration
 */
export function createStaticAuthenticator(
  options: StaticAuthOptions,
  onIgnored: () => void = () => undefined,
): StaticAuthenticator {
  const digestKey = randomBytes(DIGEST_KEY_BYTES);
  /** One that is not in it came by its certificate. */
  const identities = new WeakMap<Caller, string>();
  const declared = (given: StaticAuthOptions): Declared => {
    const inForce = declare(given, digestKey);
    for (const [digest, { caller }] of inForce.callers) identities.set(caller, digest);
    if (inForce.anonymous !== undefined) identities.set(inForce.anonymous, ANONYMOUS);
    return inForce;
  };
  let inForce = declared(options);
  let wasIgnored = false;

  return {
    authenticate(given, peerAddress, certificate): Authentication {
      const credential = inForce.ignoresCredentials ? NO_CREDENTIAL : given;
      if (credential !== given) {
        if (given.kind === 'token') given.token.fill(0);
        if (given.kind !== 'none' && !wasIgnored) {
          wasIgnored = true;
          onIgnored();
        }
      }
      if (credential.kind === 'malformed') return refused('malformed_credentials');
      // Before anything else, so that the token is wiped whatever the certificate says.
      const digest = credential.kind === 'token' ? digestOf(digestKey, credential.token) : undefined;
      const client = certificate === undefined ? undefined : clientOf(inForce, certificate, peerAddress);
      if (digest === undefined) return client ?? anonymousOf(inForce);
      const bound = inForce.callers.get(digest);
      if (bound === undefined) return refused('invalid_token');
      if (!admitsPeer(bound, peerAddress)) return refused('peer_not_allowed');
      return client?.kind === 'refused' ? client : { kind: 'caller', caller: bound.caller };
    },

    current(caller, peerAddress, certificate): Authentication {
      const client = certificate === undefined ? undefined : clientOf(inForce, certificate, peerAddress);
      const identity = identities.get(caller);
      if (identity === undefined) return client ?? refused('missing_credentials');
      if (client?.kind === 'refused') return client;
      if (identity === ANONYMOUS) return anonymousOf(inForce);
      const bound = inForce.callers.get(identity);
      if (bound === undefined) return refused('invalid_token');
      return admitsPeer(bound, peerAddress) ? { kind: 'caller', caller: bound.caller } : refused('peer_not_allowed');
    },

    replace(replacement): void {
      inForce = declared(replacement);
    },
  };
}

const NO_CREDENTIAL: Credential = Object.freeze({ kind: 'none' });

/**
 * Nothing is declared but what everybody may do: no token, no client, and no policy that such a one could have and the
 * anonymous lack. Tools send Web3Signer tokens that it does not look at (eth-docker `Bearer NIL`, DAppNode that of the
 * validator client). Wherever a credential could be good, one that is not is refused, and never anonymous.
 */
function tellsNobodyApart({ policies, anonymousPolicies, tokens, clients }: StaticAuthOptions): boolean {
  const isForAll = policies.every(({ name }) => anonymousPolicies.includes(name));
  return anonymousPolicies.length > 0 && isForAll && tokens.length === 0 && clients === undefined;
}

/** No digest is spelled like this. */
const ANONYMOUS = 'anonymous';

interface Declared {
  readonly callers: ReadonlyMap<string, BoundCaller>;
  readonly clients: KnownClients | undefined;
  readonly anonymous: Caller | undefined;
  readonly ignoresCredentials: boolean;
}

function digestOf(digestKey: Buffer, token: Buffer): string {
  try {
    return tokenDigest(digestKey, token);
  } finally {
    token.fill(0);
  }
}

function declare(options: StaticAuthOptions, digestKey: Buffer): Declared {
  try {
    return declareAll(options, digestKey);
  } finally {
    for (const { secret } of options.tokens) secret.fill(0);
  }
}

function declareAll(options: StaticAuthOptions, digestKey: Buffer): Declared {
  const accessOf = accessByName(options.policies);
  const callers = new Map<string, BoundCaller>();
  for (const [index, token] of options.tokens.entries()) {
    const digest = tokenDigest(digestKey, token.secret);
    const place = `static_auth.tokens[${index}]`;
    const earlier = callers.get(digest);
    if (earlier !== undefined) throw new Error(`${place} has the same secret as the token ${earlier.caller.accessor}`);
    const caller = {
      accessor: `static:${token.name ?? index}`,
      access: accessOf(token.policies, place),
      management: false,
    };
    callers.set(digest, { caller, boundCidrs: token.boundCidrs });
  }
  return {
    callers,
    clients: options.clients?.(accessOf),
    anonymous: anonymousCaller(options, accessOf),
    ignoresCredentials: tellsNobodyApart(options),
  };
}

function clientOf(inForce: Declared, certificate: ClientCertificate, peerAddress: string | undefined): Authentication {
  if (inForce.clients === undefined) return refused('client_certificate_unknown');
  const client = inForce.clients.judge(certificate);
  if (client.kind === 'refused') return client;
  return admitsPeer(client.bound, peerAddress)
    ? { kind: 'caller', caller: client.bound.caller }
    : refused('peer_not_allowed');
}

function admitsPeer({ boundCidrs }: BoundCaller, peerAddress: string | undefined): boolean {
  if (boundCidrs.length === 0) return true;
  return peerAddress !== undefined && anyCidrContains(boundCidrs, peerAddress);
}

function anonymousOf({ anonymous }: Declared): Authentication {
  return anonymous === undefined ? refused('missing_credentials') : { kind: 'caller', caller: anonymous };
}

type AccessOf = (names: readonly string[], place: string) => CompiledAccess;

function accessByName(policies: readonly Policy[]): AccessOf {
  const compiled = new Map<string, CompiledAccess>();
  for (const policy of policies) {
    if (compiled.has(policy.name)) throw new Error(`static_auth.policies declares ${policy.name} twice`);
    compiled.set(policy.name, compilePolicy(policy));
  }
  return (names, place) =>
    joinAccess(
      names.map((name) => {
        const access = compiled.get(name);
        if (access === undefined) throw new Error(`${place} names the policy ${name}, which is not declared`);
        return access;
      }),
    );
}

function anonymousCaller(options: StaticAuthOptions, accessOf: AccessOf): Caller | undefined {
  if (options.anonymousPolicies.length === 0) return undefined;
  const access = accessOf(options.anonymousPolicies, 'static_auth.anonymous');
  return { accessor: 'anonymous', access, management: false };
}

function refused(reason: AuthenticationRefusal): Authentication {
  return { kind: 'refused', reason };
}
