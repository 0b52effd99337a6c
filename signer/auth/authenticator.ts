// Who is asking? The interface of the two authorization modes: static.ts (stateless, tokens in the configuration) and
// the stateful one (tokens in the signer-state table). Authentication trusts the credential and the raw TCP peer
// address, never a proxy header, and a credential that is present but not good is never downgraded to anonymous access
// (but where no credential could be good: static.ts).
// A token and a client certificate are two credentials: both have to be good, and the token says what may be done.

import type { ClientCertificate } from '../tls/client-certificate.ts';
import type { CompiledAccess } from './evaluate.ts';
import type { Credential } from './tokens.ts';

export interface Caller {
  /** Names the token or the client in audit lines; `anonymous` when there was neither. */
  readonly accessor: string;
  readonly access: CompiledAccess;
  /** May administer policies and tokens. Other routes still go by `access`, except where a route admits management. */
  readonly management: boolean;
}

/** Reasons of api/errors.ts. */
export type AuthenticationRefusal =
  | 'missing_credentials'
  | 'malformed_credentials'
  | 'client_certificate_expired'
  | 'client_certificate_untrusted'
  | 'client_certificate_unknown'
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
   * @param certificate that the client showed on this connection; undefined without one, and where none is asked for
   */
  authenticate(
    credential: Credential,
    peerAddress: string | undefined,
    certificate?: ClientCertificate | undefined,
  ): Authentication;

  /**
   * The same caller as of now, for a request whose body took its time: what it may do may have changed since, or have
   * ended, or no longer from this network. The very same object when nothing has changed.
   * @param peerAddress as it was given to authenticate
   * @param certificate likewise
   */
  current(caller: Caller, peerAddress: string | undefined, certificate?: ClientCertificate | undefined): Authentication;
}
