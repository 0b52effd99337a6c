// Step "secret key memory": the BLS core that will hold the keys, and what server.mlock asks of the process.

import type { BlsCore } from '../bls/bls.ts';
import type { OpenNativeOptions } from '../bls/open.ts';
import type { Config } from '../config/options.ts';
import type { MemoryPolicy } from '../native/load.ts';
import { applyMemoryPolicy, type KeyMemoryWatch, watchKeyMemory } from './memory-lock.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface SecretMemory {
  readonly core: BlsCore;
  readonly watch: KeyMemoryWatch;
}

export type OpenBlsCore = (options: OpenNativeOptions) => Promise<BlsCore>;

interface SecretMemoryParts {
  readonly openBlsCore: OpenBlsCore;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

export async function openSecretMemory(
  { server, signing }: Pick<Config, 'server' | 'signing'>,
  { openBlsCore, telemetry: { metrics } }: SecretMemoryParts,
  { logger, enclave }: World,
  opened: AsyncDisposableStack,
): Promise<SecretMemory> {
  const log = logger.module('signing');
  const mlock = memoryPolicy(server, enclave);
  const rootTables = signing.root_tables;
  const core = await openBlsCore({ log, mlock, rootTables });
  opened.defer(() => core.close());
  applyMemoryPolicy(mlock, core, log);
  metrics.onRender(() => metrics.unlockedKeys.set(core.unlockedKeys()));
  const watch = watchKeyMemory(mlock, core, log);
  opened.defer(() => watch.stop());
  return { core, watch };
}

/** `server.mlock`, which an enclave skips (specification/operating.md#secrets). */
export function memoryPolicy({ mlock }: Config['server'], enclave: World['enclave']): MemoryPolicy {
  return enclave === undefined ? mlock : 'off';
}
