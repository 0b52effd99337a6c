// Step "permits": how many messages are signed at once, and how many of these permits are reserved for the priority
// operations.

import type { Config } from '../config/options.ts';
import { createPermits, type Permits } from '../signing/permits.ts';

export function openPermits({ max_concurrent_jobs, queue_buffer_size, priority }: Config['signing']): Permits {
  // Without operations nothing would ever take the pool's permits (config/warnings.ts says so).
  const hasPriority = priority.enabled && priority.operations.length > 0;
  return createPermits({
    maxConcurrentJobs: max_concurrent_jobs,
    queueLimit: queue_buffer_size,
    priorityJobs: hasPriority ? priority.max_concurrent_jobs : 0,
  });
}
