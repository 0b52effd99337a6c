// What a configuration allows and hardly anybody wants.

import type { Log } from '../../common/observe/log.ts';
import { paymentRemarksOn, scopeRemarksOn } from '../api/rule-remarks.ts';
import { parseTableArn } from '../aws/table-name.ts';
import { USED_POOL_CONNECTIONS } from '../slashing/postgres/connection/address.ts';
import { databaseAddress } from './egress-needs.ts';
import type { Config, OptionPath, SectionPath } from './options.ts';
import type { Facts } from './rules/rule.ts';
import { USELESS_OPTIONS, type UselessOption } from './without-effect.ts';

export interface ConfigWarning {
  readonly at: OptionPath | SectionPath;
  /** Completes the option's path to a sentence. */
  readonly says: string;
}

export interface WarningRule extends ConfigWarning {
  readonly applies: (config: Config, facts: Facts) => boolean;
}

export function warningsOf(rules: readonly WarningRule[], config: Config, facts: Facts): ConfigWarning[] {
  return rules.filter(({ applies }) => applies(config, facts)).map(({ at, says }) => ({ at, says }));
}

export function warningText({ at, says }: { readonly at: string; readonly says: string }): string {
  return `${at} ${says}`;
}

export type SaidWarning = Pick<ConfigWarning, 'says'> & { readonly at: string };

export function logWarnings(warnings: readonly SaidWarning[], log: Log): void {
  for (const warning of warnings) log.warn({ option: warning.at }, warningText(warning));
}

export const WARNINGS: readonly WarningRule[] = [
  {
    at: 'tee.nitro.unsafe_parent_writes_tables',
    says:
      'is true: whoever controls the parent instance writes the tables. So they can plant a master key before the first ' +
      'boot, delete a seal, bring revoked tokens back, and get slashable signatures by starting this image twice. Seal ' +
      'credentials for the tables instead (docs/guides/custody.md)',
    applies: ({ tee }) => tee.nitro.unsafe_parent_writes_tables,
  },
  {
    at: 'anti_slashing.unsafe_unconfirmed_clock',
    says:
      'is true: after a doubt whether records were lost, the store is raised by a clock that nothing confirms. Let a time ' +
      'service set the clock of this machine instead (docs/runbooks/certificates-and-clocks.md#unconfirmed)',
    applies: ({ anti_slashing }) => anti_slashing.unsafe_unconfirmed_clock,
  },
  {
    at: 'static_auth',
    says: 'lets nobody in, and there is no signer_state: every request but probes is refused. Define policies and tokens',
    applies: ({ static_auth: { tokens, anonymous }, tls: { known_clients }, signer_state }) =>
      tokens.length + anonymous.policies.length + known_clients.length === 0 && signer_state.table === undefined,
  },
  {
    at: 'static_auth',
    says:
      'has a policy with a condition on payments (fee_recipients, max_gas_limit, builders, builder_indices, ' +
      'only_for_own_blocks) that changes nothing: the rule leaves no operation that has it, or another rule of the policy ' +
      'allows the same without. Compare its rules (docs/guides/authorization.md)',
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
    at: 'static_auth',
    says:
      'is in the configuration, which the parent reads: it can do whatever these tokens, and requests without one, may do, ' +
      'and none of them has a lifetime; signer_state keeps tokens from it',
    applies: ({ static_auth: { tokens, anonymous }, tee }) =>
      tee.platform === 'nitro' && tokens.length + anonymous.policies.length > 0,
  },
  {
    at: 'anti_slashing.url',
    says: 'has a password, which the parent reads: it can do in the database whatever the signer may do there',
    applies: (config) => config.tee.platform === 'nitro' && (databaseAddress(config)?.password ?? '') !== '',
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
  ...USELESS_OPTIONS.map(useless),
];

export function useless({ at, because, inThis }: UselessOption): WarningRule {
  return {
    at,
    says: `does nothing: ${because}`,
    applies: (config, { isSet }) => isSet(at) && inThis(config),
  };
}

type TableOption = 'signer_state.table' | 'key_sources.dynamodb.table' | 'anti_slashing.table';

function tableAt({ signer_state, key_sources, anti_slashing }: Config, at: TableOption): string | undefined {
  if (at === 'signer_state.table') return signer_state.table;
  if (at === 'key_sources.dynamodb.table') return key_sources.dynamodb.table;
  return anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined;
}

function isBareName(table: string | undefined): boolean {
  return table !== undefined && parseTableArn(table) === undefined;
}
