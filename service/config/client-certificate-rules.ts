// Rules on client certificates: where they can be asked for at all, and that nothing stands there that would be looked
// at by nobody.

import type { Config } from '../../signer/config/options.ts';
import { type Rule, repeated, when } from '../../signer/config/rules/rule.ts';

const ABOUT = ['tls.known_clients', 'tls.client_ca', 'tls.client_auth'] as const;

export const CLIENT_CERTIFICATE_RULES: readonly Rule[] = [
  {
    says: '`tls.known_clients`, `tls.client_ca` and `tls.client_auth: required` need `tls.mode: file`: no other listener asks for client certificates.',
    reads: ['tls.mode', ...ABOUT],
    // That of an enclave's listener is among its own rules.
    broken: ({ tls }) =>
      tls.mode !== 'disabled'
        ? []
        : ABOUT.filter((at) => isUsed(tls, at)).map((at) => ({
            at,
            problem: 'is set, and no TLS listener asks for it',
            remedy: 'set tls.mode: file, or remove it',
          })),
  },
  {
    says: '`tls.known_clients` is for stateless authorization: with `signer_state` credentials and policies are in the state table, which has no certificates.',
    reads: ['tls.known_clients', 'signer_state'],
    broken: ({ tls }, { isSet }) =>
      when(tls.known_clients.length > 0 && isSet('signer_state'), {
        at: 'tls.known_clients',
        problem: 'is set together with signer_state, whose policies are for tokens of the state table alone',
        remedy: 'give these clients tokens (operator auth token create), or use static_auth without signer_state',
      }),
  },
  {
    says: '`tls.client_ca` and a `subject` in `tls.known_clients` need each other: without the CA anybody makes a certificate of that subject, and without a subject the CA vouches for nobody.',
    reads: ['tls.known_clients', 'tls.client_ca'],
    broken: ({ tls: { client_ca, known_clients } }) => [
      ...known_clients.flatMap(({ subject }, index) =>
        when(subject !== undefined && client_ca === undefined, {
          at: 'tls.known_clients',
          within: [index, 'subject'],
          problem: 'is set, and there is no tls.client_ca that could vouch for it',
          remedy: 'set tls.client_ca, or pin the client with spki_sha256 or certificate_sha256',
        }),
      ),
      ...when(client_ca !== undefined && known_clients.every(({ subject }) => subject === undefined), {
        at: 'tls.client_ca',
        problem: 'is set, and no client in tls.known_clients is known by its subject',
        remedy: 'name the clients by subject, with their policies, or remove it',
      }),
    ],
  },
  {
    says: '`tls.client_auth: required` needs `tls.known_clients`: nobody could connect.',
    reads: ['tls.known_clients', 'tls.client_auth'],
    broken: ({ tls: { client_auth, known_clients } }) =>
      when(client_auth === 'required' && known_clients.length === 0, {
        at: 'tls.client_auth',
        problem: 'is required, and there are no tls.known_clients: nobody could connect',
        remedy: 'list the clients in tls.known_clients',
      }),
  },
  {
    says: 'Clients in `tls.known_clients` have different names, and each is known by something of its own.',
    reads: ['tls.known_clients'],
    broken: ({ tls: { known_clients } }) => [
      ...repeated(known_clients.map(({ name }) => name)).map((index) => ({
        at: 'tls.known_clients' as const,
        within: [index, 'name'],
        problem: 'is the name of an earlier client: audit lines could not tell them apart',
        remedy: 'give each client a name of its own',
      })),
      ...repeated(known_clients.map(knownBy)).map((index) => ({
        at: 'tls.known_clients' as const,
        within: [index],
        problem: 'is known by the same as an earlier client: which policies apply would be a matter of order',
        remedy: 'remove one of them',
      })),
    ],
  },
  {
    says: 'Clients in `tls.known_clients` name policies that `static_auth.policies` has.',
    reads: ['tls.known_clients', 'static_auth'],
    broken: ({ tls, static_auth }) => {
      const known = new Set(static_auth.policies.map(({ name }) => name));
      return tls.known_clients.flatMap(({ policies }, client) =>
        policies.flatMap((name, index) =>
          when(!known.has(name), {
            at: 'tls.known_clients',
            within: [client, 'policies', index],
            problem: 'names a policy that static_auth.policies does not have',
            remedy: 'define the policy, or correct the name',
          }),
        ),
      );
    },
  },
];

function isUsed({ known_clients, client_ca, client_auth }: Config['tls'], at: (typeof ABOUT)[number]): boolean {
  if (at === 'tls.known_clients') return known_clients.length > 0;
  return at === 'tls.client_ca' ? client_ca !== undefined : client_auth === 'required';
}

function knownBy({ subject, spki_sha256, certificate_sha256, file }: Config['tls']['known_clients'][number]): string {
  return JSON.stringify([subject, spki_sha256, certificate_sha256, file]);
}
