// Whether the system lets this process have as many file descriptors as its connection limits promise. Without them the
// runtime drops new connections without a word, so it is said at the start.

import { readFileSync } from 'node:fs';
import type { Log } from '../observe/log.ts';
import { INGRESS, type ProxyConfiguration } from './configuration.ts';
import {
  MAX_CONFIGURATION_CONNECTIONS,
  MAX_CREDENTIALS_CONNECTIONS,
  MAX_LOG_CONNECTIONS,
  MAX_SCRAPERS,
} from './limits.ts';

/** A forwarded connection has two ends. */
const PER_CONNECTION = 2;
/** Listeners, the runtime's own, files. */
const BESIDES = 128;

export function warnOfFewDescriptors(configuration: ProxyConfiguration, log: Log): void {
  const limit = descriptorLimit();
  const needed = neededDescriptors(configuration);
  if (limit === undefined || limit >= needed) return;
  log.warn(
    { limit, needed },
    'the limit of file descriptors is below what the connection limits need: raise it (LimitNOFILE)',
  );
}

function neededDescriptors({ endpoints, options }: ProxyConfiguration): number {
  const forwarding = (INGRESS.length + endpoints.length) * options.limits.max_connections_per_port * PER_CONNECTION;
  const services = MAX_LOG_CONNECTIONS + MAX_CONFIGURATION_CONNECTIONS + MAX_CREDENTIALS_CONNECTIONS + MAX_SCRAPERS;
  return forwarding + services + endpoints.length + BESIDES;
}

/** The soft limit; undefined where there is none, or no /proc. */
function descriptorLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
