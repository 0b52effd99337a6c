// Options that were set and change nothing, with a warning for each.

import type { Config, OptionPath, SectionPath } from './options.ts';

export interface UselessOption {
  readonly at: OptionPath | SectionPath;
  /** Completes `does nothing: `. */
  readonly because: string;
  readonly inThis: (config: Config) => boolean;
}

const noPriority = ({ signing }: Config): boolean => !signing.priority.enabled;
export const isNot =
  (backend: Config['anti_slashing']['backend']) =>
  ({ anti_slashing }: Config): boolean =>
    anti_slashing.backend !== backend;

export const USELESS_OPTIONS: readonly UselessOption[] = [
  { at: 'anti_slashing.pool_size', because: 'it is for the backend postgres. Remove it', inThis: isNot('postgres') },
  { at: 'anti_slashing.force_ipv4', because: 'it is for the backend postgres. Remove it', inThis: isNot('postgres') },
  {
    at: 'anti_slashing.max_concurrent_writes',
    because: 'it is for the backend dynamodb. Remove it',
    inThis: isNot('dynamodb'),
  },
  {
    at: 'anti_slashing.clock_tolerance_seconds',
    because: 'with signer_state and in an enclave it is 12. Remove it',
    inThis: ({ signer_state, tee }) => signer_state.table !== undefined || tee.platform === 'nitro',
  },
  {
    at: 'signing.priority.max_concurrent_jobs',
    because: 'signing.priority.enabled is false. Set it to true, or remove it',
    inThis: noPriority,
  },
  {
    at: 'signing.priority.operations',
    because: 'signing.priority.enabled is false. Set it to true, or remove it',
    inThis: noPriority,
  },
  ...(['endpoint', 'service_name'] as const).map(
    (member): UselessOption => ({
      at: `opentelemetry.${member}`,
      because: 'opentelemetry.enabled is false. Set it to true, or remove it',
      inThis: ({ opentelemetry }) => !opentelemetry.enabled,
    }),
  ),
  {
    at: 'logging.color',
    because: 'logging.format is json, which has no colour. Remove it',
    inThis: ({ logging }) => logging.format === 'json',
  },
  ...(
    ['max_concurrent_reads', 'max_concurrent_writes', 'request_timeout_seconds', 'max_items_per_request'] as const
  ).map(
    (member): UselessOption => ({
      at: `http.key_manager_api.${member}`,
      because: 'http.key_manager_api.enabled is false. Set it to true, or remove it',
      inThis: ({ http }) => !http.key_manager_api.enabled,
    }),
  ),
  ...(['generate', 'generate_keys', 'deposit_data', 'import', 'lifecycle'] as const).map(
    (route): UselessOption => ({
      at: `chamber.keys.${route}.max_items_per_request`,
      because: `chamber.keys.${route}.enabled is false. Set it to true, or remove it`,
      inThis: ({ chamber }) => !chamber.keys[route].enabled,
    }),
  ),
];
