// What a configuration allows and hardly anybody wants: it starts, and says so. `server --check` and the start say
// the same. What only the machine or a store can tell (a certificate that has expired, a new slashing database) is
// said where it is found.

import { isAbsolute } from 'node:path';
import { paymentRemarksOn, scopeRemarksOn } from '../api/reference/rule-remarks.ts';
import { parseTableArn } from '../aws/table-name.ts';
import { USED_POOL_CONNECTIONS } from '../slashing/postgres/connection/pool.ts';
import type { Config, OptionPath, SectionPath } from './options.ts';
import type { Facts } from './rules/rule.ts';
import { USELESS_OPTIONS } from './without-effect.ts';

export interface ConfigWarning {
  readonly at: OptionPath | SectionPath;
  /** Completes the option's path to a sentence, and says what to do. */
  readonly says: string;
}

interface WarningRule extends ConfigWarning {
  readonly applies: (config: Config, facts: Facts) => boolean;
}

export function warningsOf(config: Config, facts: Facts): ConfigWarning[] {
  return WARNINGS.filter(({ applies }) => applies(config, facts)).map(({ at, says }) => ({ at, says }));
}

/** As one line, for a terminal and for the log. */
export function warningText({ at, says }: { readonly at: string; readonly says: string }): string {
  return `${at} ${says}`;
}

export const WARNINGS: readonly WarningRule[] = [
  {
    at: 'static_auth',
    says: 'lets nobody in, and there is no signer_state: every request but probes is refused. Define policies and tokens',
    applies: ({ static_auth: { tokens, anonymous }, tls: { known_clients }, signer_state }) =>
      tokens.length + anonymous.policies.length + known_clients.length === 0 && signer_state.table === undefined,
  },
  {
    at: 'static_auth',
    says:
      'has a policy whose fee_recipients or max_gas_limit change nothing: the rule leaves no payment operation, or another ' +
      'rule of the policy allows the same payments without. Compare its rules (docs/guides/authorization.md)',
    applies: ({ static_auth: { policies } }) => policies.some(({ rules }) => paymentRemarksOn(rules).length > 0),
  },
  {
    at: 'static_auth',
    says:
      'has a rule with operations beside other scopes than sign: requests of those have no operation, so the rule says ' +
      'nothing about them. Write a rule without operations for those (docs/guides/authorization.md)',
    applies: ({ static_auth: { policies } }) => policies.some(({ rules }) => scopeRemarksOn(rules).length > 0),
  },
  {
    at: 'server.listen_address',
    says: 'offers plain HTTP beyond this machine: whoever sees the network sees tokens. Listen on 127.0.0.1, and use tls.mode for others',
    applies: outsideEnclave(({ server }) => !isLoopback(server.listen_address)),
  },
  {
    at: 'metrics.listen_address',
    says: 'offers metrics, which need no token, beyond this machine. Listen on 127.0.0.1, or keep the port behind a firewall',
    applies: outsideEnclave(({ metrics }) => !isLoopback(metrics.listen_address)),
  },
  {
    at: 'anti_slashing.path',
    says: 'is relative: a start from another folder begins with a new database, which knows nothing of what was signed. Write it from the root',
    applies: ({ anti_slashing: { backend, path } }) => backend === 'sqlite' && !isAbsolute(path),
  },
  {
    at: 'anti_slashing.backend',
    says:
      'is sqlite, a store for one signer, and the keys are in a table that several signers can load: the others sign nothing ' +
      'while one does. For a fleet choose postgres or dynamodb',
    applies: ({ anti_slashing: { backend }, key_sources }) =>
      backend === 'sqlite' && key_sources.dynamodb.table !== undefined,
  },
  ...(['signer_state.table', 'key_sources.dynamodb.table', 'anti_slashing.table'] as const).map(
    (at): WarningRule => ({
      at,
      says:
        'is a name, and this is an enclave: DynamoDB looks for it in the account of whoever asks, so whoever chooses the ' +
        'credentials chooses the table. Write its ARN, arn:aws:dynamodb:REGION:ACCOUNT:table/NAME',
      applies: (config) => config.tee.platform === 'nitro' && isBareName(tableAt(config, at)),
    }),
  ),
  {
    at: 'anti_slashing.pool_size',
    says: `is more than is ever in use: ${USED_POOL_CONNECTIONS} connections serve batches and what goes on beside them. Leave it out`,
    applies: ({ anti_slashing: { backend, pool_size } }, { isSet }) =>
      backend === 'postgres' && isSet('anti_slashing.pool_size') && pool_size > USED_POOL_CONNECTIONS,
  },
  {
    at: 'signing.priority.operations',
    says: 'is empty, and the priority pool is enabled: nothing has priority, and no permits are set aside. Name operations, or disable the pool',
    applies: ({ signing: { priority } }) => priority.enabled && priority.operations.length === 0,
  },
  {
    at: 'server.trust_proxy_headers',
    says: 'does nothing without server.trusted_proxy_cidrs: audit lines name the proxy. List the networks of your proxies',
    applies: ({ server }) => server.trust_proxy_headers && server.trusted_proxy_cidrs.length === 0,
  },
  {
    at: 'server.trusted_proxy_cidrs',
    says: 'does nothing without server.trust_proxy_headers: true',
    applies: ({ server }) => !server.trust_proxy_headers && server.trusted_proxy_cidrs.length > 0,
  },
  {
    at: 'chamber.keys.backup.recipients',
    says: 'does nothing: neither chamber.keys.generate nor generate_keys is enabled, so there is no key to back up',
    applies: ({ chamber: { keys } }) =>
      keys.backup.recipients.length > 0 && !keys.generate.enabled && !keys.generate_keys.enabled,
  },
  {
    at: 'ceremony',
    says: 'does nothing without signer_state: there is no master key that it would protect',
    applies: ({ ceremony, signer_state }) => ceremony !== undefined && signer_state.table === undefined,
  },
  ...USELESS_OPTIONS.map(
    ({ at, because, inThis }): WarningRule => ({
      at,
      says: `does nothing: ${because}`,
      applies: (config, { isSet }) => isSet(at) && inThis(config),
    }),
  ),
];

/** In an enclave a listener is a vsock port, and its parent decides who reaches it. */
function outsideEnclave(applies: (config: Config) => boolean): WarningRule['applies'] {
  return (config) => config.tee.platform !== 'nitro' && applies(config);
}

type TableOption = 'signer_state.table' | 'key_sources.dynamodb.table' | 'anti_slashing.table';

/** Undefined for one that is not used. */
function tableAt({ signer_state, key_sources, anti_slashing }: Config, at: TableOption): string | undefined {
  if (at === 'signer_state.table') return signer_state.table;
  if (at === 'key_sources.dynamodb.table') return key_sources.dynamodb.table;
  return anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined;
}

function isBareName(table: string | undefined): boolean {
  return table !== undefined && parseTableArn(table) === undefined;
}

function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || address.startsWith('127.');
}
