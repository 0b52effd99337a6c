// Every cross-field rule of a signer: the startup failures that configuration alone decides
// (specification/operating.md#startup-failures), and more. A rule that asks for the value of an option
// that is refused already is left out, so that one mistake makes one violation.

import { levelOf, parseLogFilter } from '../../../common/observe/log-filter.ts';
import { CUSTODY_RULES } from './custody.ts';
import { ENCLAVE_RULES } from './enclave.ts';
import { LISTENER_RULES } from './listeners.ts';
import { NETWORK_RULES } from './network.ts';
import { type ConfigRule, when } from './rule.ts';
import { STATIC_AUTH_RULES } from './static-auth.ts';
import { TABLE_RULES } from './tables.ts';

export const SIGNING_RULES: readonly ConfigRule[] = [
  {
    says: '`anti_slashing.backend: postgres` needs `anti_slashing.url`, and `dynamodb` needs `anti_slashing.table`.',
    broken: ({ anti_slashing }) =>
      (
        [
          ['postgres', 'url'],
          ['dynamodb', 'table'],
        ] as const
      ).flatMap(([backend, member]) =>
        when(anti_slashing.backend === backend && anti_slashing[member] === undefined, {
          at: `anti_slashing.${member}`,
          problem: `is missing, and the backend is ${backend}`,
          remedy: `set anti_slashing.${member}`,
        }),
      ),
  },
  {
    says: '`anti_slashing.url` is for the backend `postgres`, `anti_slashing.table` for `dynamodb`: with another backend the shared database would go unused.',
    broken: ({ anti_slashing: { backend } }, { isSet }) =>
      (
        [
          ['anti_slashing.url', 'postgres'],
          ['anti_slashing.table', 'dynamodb'],
        ] as const
      ).flatMap(([at, itsBackend]) =>
        when(isSet(at) && backend !== itsBackend, {
          at,
          problem: isSet('anti_slashing.backend')
            ? `is set, and the backend is ${backend}, which does not use it`
            : 'is set, and no anti_slashing.backend is: the default, sqlite, would not use it',
          remedy: `set anti_slashing.backend: ${itsBackend}, or remove it`,
        }),
      ),
  },
  {
    says: 'With `signing.priority.enabled`, its `max_concurrent_jobs` is less than `signing.max_concurrent_jobs`.',
    broken: ({ signing }) =>
      when(signing.priority.enabled && signing.priority.max_concurrent_jobs >= signing.max_concurrent_jobs, {
        at: 'signing.priority.max_concurrent_jobs',
        problem: 'leaves nothing of signing.max_concurrent_jobs to other operations',
        remedy: 'make it less than signing.max_concurrent_jobs',
      }),
  },
];

const AUDIT_RULES: readonly ConfigRule[] = [
  {
    says: 'With `audit.required`, `logging.level` keeps audit lines: `audit=info`, or no word of audit.',
    broken: ({ audit, logging }) =>
      when(audit.required && !hasAuditLines(logging.level), {
        at: 'logging.level',
        problem: 'leaves audit lines out, and audit.required is true',
        remedy: 'take audit out of the filter, or set audit=info',
      }),
  },
];

function hasAuditLines(filter: string): boolean {
  const parsed = parseLogFilter(filter);
  return parsed !== undefined && ['trace', 'debug', 'info'].includes(levelOf('audit', parsed));
}

export const RULES: readonly ConfigRule[] = [
  ...STATIC_AUTH_RULES,
  ...NETWORK_RULES,
  ...SIGNING_RULES,
  ...CUSTODY_RULES,
  ...LISTENER_RULES,
  ...ENCLAVE_RULES,
  ...TABLE_RULES,
  ...AUDIT_RULES,
];
