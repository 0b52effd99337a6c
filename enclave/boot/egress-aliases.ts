// Step "egress aliases": in an enclave, the declared ways out. Outside there is nothing to open.

import type { Config } from '../config/options.ts';
import { openEgress } from '../tee/parent/egress.ts';
import type { World } from './boot.ts';
import type { Telemetry } from './telemetry.ts';

export async function openEgressAliases(
  { tee }: Config,
  { enclave, logger }: World,
  { metrics }: Pick<Telemetry, 'metrics'>,
  opened: AsyncDisposableStack,
): Promise<void> {
  if (enclave === undefined) return;
  const { parent, hostsPath, aliasPort } = enclave.platform;
  const egress = await openEgress(tee.nitro.egress.endpoints, {
    parent,
    hostsPath,
    aliasPort,
    onConnection: (endpoint, outcome) => metrics.egressConnections.inc({ endpoint: String(endpoint), outcome }),
    log: logger.module('tee'),
  });
  opened.defer(() => egress.close());
}
