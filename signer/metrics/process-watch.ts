// Metrics of the process itself, read when the metrics are.

import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricHandles } from './metrics.ts';

interface ProcessWatch {
  collect(): void;
  close(): void;
}

const LAG_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

export function watchProcess(metrics: MetricHandles): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delay.enable();
  metrics.processStartTime.set(performance.timeOrigin / 1000);

  return {
    collect() {
      const { user, system } = process.cpuUsage();
      metrics.processCpuSeconds.reach((user + system) / MICROSECONDS);
      const memory = process.memoryUsage();
      metrics.processResidentBytes.set(memory.rss);
      metrics.processHeapBytes.set(memory.heapUsed);
      metrics.processExternalBytes.set(memory.external);
      if (process.platform === 'linux') metrics.processFileDescriptors.set(openFileDescriptors());
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(50)), { statistic: 'p50' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(99)), { statistic: 'p99' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.max), { statistic: 'max' });
      delay.reset();
    },
    close: () => void delay.disable(),
  };
}

/** The runtime records the time between two looks; what exceeds the interval is lag. */
function lagSeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS - LAG_RESOLUTION_MS / 1000);
}

function openFileDescriptors(): number {
  return readdirSync('/proc/self/fd').length - 1; // without the one that this reading opened
}
