// Clients that are known by a certificate (specification/authorization.md#client-certificates). What is in force is
// asked with each request, never with the connection.

import { type ClientCertificate, commonNamesOf } from '../tls/client-certificate.ts';
import type { Cidr } from './cidr.ts';
import type { BoundCaller, DeclareClients, JudgedClient } from './static.ts';

type ClientMatch =
  | { readonly kind: 'certificate'; readonly sha256: string; readonly commonName?: string }
  | { readonly kind: 'spki'; readonly sha256: string }
  | { readonly kind: 'subject'; readonly subject: string };

export interface StaticClient {
  readonly name: string;
  readonly match: ClientMatch;
  readonly policies: readonly string[];
  readonly boundCidrs: readonly Cidr[];
}

export function declareClients(clients: readonly StaticClient[]): DeclareClients {
  return (accessOf) => {
    const known = new KnownClients();
    for (const { name, match, policies, boundCidrs } of clients) {
      const place = `the client ${name} of tls.known_clients`;
      const caller = { accessor: `client:${name}`, access: accessOf(policies, place), management: false };
      known.add(match, { caller, boundCidrs }, place);
    }
    return known;
  };
}

class KnownClients {
  readonly #byMatch = new Map<string, { readonly bound: BoundCaller; readonly match: ClientMatch }>();

  add(match: ClientMatch, bound: BoundCaller, place: string): void {
    const key = keyOf(match);
    const earlier = this.#byMatch.get(key);
    if (earlier !== undefined) {
      throw new Error(`${place} is known by the same ${NAMES[match.kind]} as ${earlier.bound.caller.accessor}`);
    }
    this.#byMatch.set(key, { bound, match });
  }

  judge(certificate: ClientCertificate): JudgedClient {
    if (!certificate.isValidNow()) return { kind: 'refused', reason: 'client_certificate_expired' };
    const bound = this.#pinned(certificate);
    if (bound !== undefined) return { kind: 'known', bound };
    if (!certificate.isTrusted()) return { kind: 'refused', reason: 'client_certificate_untrusted' };
    const named = this.#byMatch.get(keyOf({ kind: 'subject', subject: certificate.subject }));
    if (named !== undefined) return { kind: 'known', bound: named.bound };
    return { kind: 'refused', reason: 'client_certificate_unknown' };
  }

  #pinned(certificate: ClientCertificate): BoundCaller | undefined {
    const whole = this.#byMatch.get(keyOf({ kind: 'certificate', sha256: certificate.fingerprint }));
    if (whole !== undefined && hasName(certificate, whole.match)) return whole.bound;
    if (certificate.spkiSha256 === undefined) return undefined;
    return this.#byMatch.get(keyOf({ kind: 'spki', sha256: certificate.spkiSha256 }))?.bound;
  }
}

const NAMES = { certificate: 'certificate', spki: 'public key', subject: 'subject' } as const;

function keyOf(match: ClientMatch): string {
  return `${match.kind} ${match.kind === 'subject' ? match.subject : match.sha256}`;
}

/** A file of known clients states a common name with each fingerprint: both have to be right. */
function hasName(certificate: ClientCertificate, match: ClientMatch): boolean {
  if (match.kind !== 'certificate' || match.commonName === undefined) return true;
  const wanted = match.commonName.toLowerCase();
  return commonNamesOf(certificate).some((name) => name.toLowerCase() === wanted);
}
