// Step "secret key memory": the BLS core that will hold the keys, and what server.mlock asks of the process.

import type { World } from '../boot.ts';
import { COMPILED } from '../compiled.ts';
import type { Config } from '../config/options.ts';
import { applyMemoryPolicy } from '../harden/memory.ts';
import type { MemoryPolicy } from '../native/load.ts';
import type { BlsCore } from '../signing/bls.ts';
import { openBlsCore } from '../signing/bls-open.ts';

export async function openSecretMemory(
  config: Config,
  { logger, blsCore, enclave }: World,
  opened: AsyncDisposableStack,
): Promise<BlsCore> {
  const log = logger.module('signing');
  const mlock = memoryPolicy(config, enclave);
  const rootTables = config.signing.root_tables;
  const core = await openBlsCore({ log, mlock, rootTables, prefer: blsCore, nativeOnly: COMPILED !== undefined });
  opened.defer(() => core.close());
  applyMemoryPolicy(mlock, core, log);
  return core;
}

/** `server.mlock`, which an enclave skips: it has no swap, no core dumps, and nobody beside it to look (service.md, server.mlock). */
export function memoryPolicy({ server }: Config, enclave: World['enclave']): MemoryPolicy {
  return enclave === undefined ? server.mlock : 'off';
}
