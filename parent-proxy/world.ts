// What the parts of the parent proxy share: the way to the enclave, time, the log, the metrics. main.ts makes it, and
// tests do.

import type { Output } from '../common/observe/output.ts';
import type { Transport } from '../signer/native/transport.ts';
import type { PausingClock } from './clock.ts';
import type { ProxyLogger } from './log.ts';
import type { ProxyMetrics } from './metrics.ts';

export interface ProxyWorld {
  readonly transport: Transport;
  readonly clock: PausingClock;
  readonly logger: ProxyLogger;
  readonly metrics: ProxyMetrics;
  readonly output: Pick<Output, 'write' | 'drained'>;
}

export interface Limits {
  readonly maxConnections: number;
  readonly idleTimeoutMs: number;
  /** Clients of the enclave, which may not keep a place that the enclave has given up. */
  readonly lingerMs?: number;
  readonly connectTimeoutMs: number;
  readonly connectRetryMs: number;
}
