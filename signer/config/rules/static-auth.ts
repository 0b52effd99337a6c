// Rules on stateless authorization: how it goes together with stateful mode, and names and secrets that must not be
// ambiguous.

import type { Config } from '../options.ts';
import { type ConfigFinding, type ConfigRule, repeated, when } from './rule.ts';

export const STATIC_AUTH_RULES: readonly ConfigRule[] = [
  {
    startupFailure: 1,
    says: '`static_auth` and `signer_state` exclude each other.',
    broken: (_, { isSet }) =>
      when(isSet('static_auth') && isSet('signer_state'), {
        at: 'static_auth',
        problem: 'is set together with signer_state',
        remedy: 'keep static_auth for stateless mode, or signer_state for stateful mode',
      }),
  },
  {
    says: 'Policies in `static_auth` have unique names, and tokens and `anonymous` name policies that exist.',
    broken: ({ static_auth }) => [
      ...repeated(static_auth.policies.map(({ name }) => name)).map((index) => ({
        at: 'static_auth' as const,
        within: ['policies', index, 'name'],
        problem: 'is the name of an earlier policy',
        remedy: 'give each policy a name of its own',
      })),
      ...unknownPolicies(static_auth),
    ],
  },
  {
    says: 'Tokens in `static_auth` have different names, where they have one.',
    broken: ({ static_auth }) =>
      repeated(static_auth.tokens.map(({ name }, index) => name ?? String(index))).map((index) => ({
        at: 'static_auth' as const,
        within: ['tokens', index, 'name'],
        problem: 'is the name of an earlier token: audit lines could not tell them apart',
        remedy: 'give each token a name of its own',
      })),
  },
  {
    says: 'Tokens in `static_auth` have different secrets.',
    broken: ({ static_auth }) =>
      repeated(static_auth.tokens.map(({ secret }) => secret.reveal().toString('base64'))).map((index) => ({
        at: 'static_auth' as const,
        within: ['tokens', index, 'secret'],
        problem: 'is the secret of an earlier token: which policies apply would be a matter of order',
        remedy: 'give each token a secret of its own',
      })),
  },
];

function unknownPolicies({ policies, anonymous, tokens }: Config['static_auth']): ConfigFinding[] {
  const known = new Set(policies.map(({ name }) => name));
  const uses = [
    { names: anonymous.policies, at: ['anonymous', 'policies'] },
    ...tokens.map((token, index) => ({ names: token.policies, at: ['tokens', index, 'policies'] })),
  ];
  return uses.flatMap(({ names, at }) =>
    names.flatMap((name, index) =>
      when(!known.has(name), {
        at: 'static_auth',
        within: [...at, index],
        problem: 'names a policy that static_auth.policies does not have',
        remedy: 'define the policy, or correct the name',
      }),
    ),
  );
}
