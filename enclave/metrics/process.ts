// Metrics of the process itself: CPU, memory, file descriptors, and how late the event loop runs. Read when the metrics
// are, not on a timer of their own; only the lag is measured all the time, by the runtime.

import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricHandles } from './handles.ts';

export interface ProcessWatch {
  collect(): void;
  close(): void;
}

/** How often the runtime looks whether the loop is late. */
const LAG_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

export function watchProcess(metrics: MetricHandles): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delay.enable();
  let cpuSecondsCounted = 0;
  metrics.processStartTime.set(performance.timeOrigin / 1000);

  return {
    collect() {
      const { user, system } = process.cpuUsage();
      const cpuSeconds = (user + system) / MICROSECONDS;
      metrics.processCpuSeconds.add(cpuSeconds - cpuSecondsCounted);
      cpuSecondsCounted = cpuSeconds;
      const memory = process.memoryUsage();
      metrics.processResidentBytes.set(memory.rss);
      metrics.processHeapBytes.set(memory.heapUsed);
      metrics.processExternalBytes.set(memory.external);
      if (process.platform === 'linux') metrics.processFileDescriptors.set(openFileDescriptors());
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(50)), { quantile: '0.5' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.percentile(99)), { quantile: '0.99' });
      metrics.eventLoopLagSeconds.set(lagSeconds(delay.max), { quantile: '1' });
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
