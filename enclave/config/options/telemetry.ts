// Options of what the signer tells of itself: traces and the log.

import { flagged, type Option } from '../option.ts';
import { boolean, httpUrl, logFilter, oneOf, text } from '../values/values.ts';

export const TELEMETRY_OPTIONS = {
  'opentelemetry.enabled': flagged(boolean, false, 'OTLP tracing export'),
  'opentelemetry.endpoint': flagged(httpUrl, 'http://localhost:4317', 'OTLP gRPC URL of the collector'),
  'opentelemetry.service_name': flagged(text, 'strongroom', 'Service name on traces'),
  'logging.level': flagged(
    logFilter,
    'info',
    'Log level, or a filter of levels by module. Audit lines have the level `audit=info` until the filter names another, or is `off`',
  ),
  'logging.format': flagged(oneOf('text', 'json'), 'text', 'Log format'),
  'logging.color': flagged(
    boolean,
    undefined,
    'ANSI colour; when unset, on a terminal unless NO_COLOR or TERM=dumb is set, and wherever FORCE_COLOR is',
  ),
} as const satisfies Record<string, Option>;
