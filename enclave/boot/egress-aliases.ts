// Step "egress aliases": in an enclave, the declared connections to the outside. Elsewhere it does nothing.

import type { Config } from '../config/options.ts';
import { openEgress } from '../tee/parent/egress.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export async function openEgressAliases(
  { endpoints }: Config['tee']['nitro']['egress'],
  { telemetry: { metrics } }: { readonly telemetry: Pick<Telemetry, 'metrics'> },
  { enclave, logger }: World,
  opened: AsyncDisposableStack,
): Promise<void> {
  if (enclave === undefined) return;
  const { parent, hostsPath, aliasPort } = enclave.platform;
  const egress = await openEgress(endpoints, {
    parent,
    hostsPath,
    aliasPort,
    onConnection: (endpoint, outcome) => metrics.egressConnections.inc({ endpoint: String(endpoint), outcome }),
    log: logger.module('tee'),
  });
  opened.defer(() => egress.close());
}
