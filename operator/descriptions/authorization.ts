// What `auth policy …` and `auth token …` say of themselves.

import { remoteDescription, YES } from '../command.ts';
import { PRESET_NAMES } from '../policy-presets.ts';

const NAME = { name: { placeholder: 'NAME', meaning: 'Of the policy', required: true } } as const;
const RULES = {
  rules: { placeholder: 'JSON', meaning: 'List of rules, or @FILE, which may be YAML (docs/guides/authorization.md)' },
  preset: {
    placeholder: 'NAME',
    meaning: `Instead of --rules, rules for such a holder: ${PRESET_NAMES.join(', ')}`,
    choices: PRESET_NAMES,
  },
} as const;
const DRY_RUN = { 'dry-run': { meaning: 'Show what would change, and change nothing' } } as const;
const ACCESSOR = { accessor: { placeholder: 'ACCESSOR', meaning: 'Of the token', required: true } } as const;

export const policyCreate = remoteDescription({
  summary: 'Create a policy',
  flags: {
    ...NAME,
    ...RULES,
    ...DRY_RUN,
  },
  examples: [
    'auth policy create --name validator-client --preset validator-client',
    `auth policy create --name all --rules '[{"effect":"allow","scopes":["sign"]}]'`,
  ],
});

export const policyList = remoteDescription({
  summary: 'List the policies',
  flags: {},
  examples: ['auth policy list', `auth policy list --json | jq -r '.policies[].name'`],
});

export const policyGet = remoteDescription({
  summary: 'Show a policy with its rules',
  flags: { ...NAME },
  examples: ['auth policy get --name validator-client', 'auth policy get --name monitoring --json'],
});

export const policyUpdate = remoteDescription({
  summary: "Replace a policy's rules",
  flags: { ...NAME, ...RULES, ...DRY_RUN, ...YES },
  examples: [
    'auth policy update --name validator-client --preset validator-client --dry-run',
    'auth policy update --name signing --rules @rules.yaml --yes',
  ],
});

export const policyDelete = remoteDescription({
  summary: 'Delete a policy that no live token is bound to',
  flags: { ...NAME, ...YES },
  examples: ['auth policy delete --name monitoring', 'auth policy delete --name monitoring --yes'],
});

export const tokenCreate = remoteDescription({
  summary: 'Create a token, which is shown once',
  flags: {
    policies: { placeholder: 'NAME,NAME', meaning: 'Policies that govern the token' },
    'ttl-seconds': { placeholder: 'SECONDS', meaning: 'Lifetime; without it the token does not expire' },
    'bound-cidrs': { placeholder: 'CIDR,CIDR', meaning: 'Source networks it works from; else from anywhere' },
    description: { placeholder: 'TEXT', meaning: 'For people' },
    management: { meaning: 'A management token: administers policies and tokens' },
  },
  notes: [
    'In an enclave the address of a client is what its parent instance writes (the PROXY header): there ' +
      '--bound-cidrs restricts remote callers, not whoever controls the parent.',
  ],
  examples: [
    'auth token create --policies validator-client --bound-cidrs 10.0.4.0/24',
    'auth token create --management --ttl-seconds 3600 --description Alice',
  ],
});

export const tokenList = remoteDescription({
  summary: 'List the tokens, without their secrets',
  flags: {},
  examples: ['auth token list', `auth token list --json | jq -r '.tokens[].accessor'`],
});

export const tokenLookup = remoteDescription({
  summary: 'Show a token: the policies it is bound to, and its limits',
  flags: { ...ACCESSOR },
  examples: [
    'auth token lookup --accessor acc_0123456789abcdef0123456789abcdef',
    'auth token lookup --accessor "$ACCESSOR" --json',
  ],
});

export const tokenRevoke = remoteDescription({
  summary: 'Revoke a token: requests with it are rejected',
  flags: { ...ACCESSOR, ...YES },
  examples: [
    'auth token revoke --accessor acc_0123456789abcdef0123456789abcdef',
    'auth token revoke --accessor acc_0123456789abcdef0123456789abcdef --yes',
  ],
});
