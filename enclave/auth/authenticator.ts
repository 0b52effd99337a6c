// Who is asking? The interface of the two authorization modes: static.ts (stateless, tokens in the configuration) and
// the stateful one (tokens in the signer-state table). Authentication trusts the credential and the raw TCP peer
// address, never a proxy header, and a credential that is present but not good is never downgraded to anonymous access.

import type { Credential } from './credentials.ts';
import type { CompiledAccess } from './evaluate.ts';

export interface Caller {
  /** Names the token in audit lines; `anonymous` when there was none. */
  readonly accessor: string;
  readonly access: CompiledAccess;
  /** May administer policies and tokens. Other routes still go by `access`, except where a route admits management. */
  readonly management: boolean;
}

/** Reasons of api/errors.ts. */
export type AuthenticationRefusal =
  | 'missing_credentials'
  | 'malformed_credentials'
  | 'invalid_token'
  | 'peer_not_allowed'
  | 'auth_sealed';

export type Authentication =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'refused'; readonly reason: AuthenticationRefusal };

export interface Authenticator {
  /**
   * Takes the credential: its bytes are wiped before this returns.
   * @param peerAddress of the connection; undefined when the socket is gone, and then no bound token is good
   */
  authenticate(credential: Credential, peerAddress: string | undefined): Authentication;

  /**
   * The same caller as of now, for a request whose body took its time: what it may do may have changed since, or have
   * ended. The very same object when nothing has changed.
   */
  current(caller: Caller): Authentication;
}
