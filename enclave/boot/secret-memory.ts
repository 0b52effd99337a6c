// Step "secret key memory": the BLS core that will hold the keys, and what server.mlock asks of the process.

import type { World } from '../boot.ts';
import type { Config } from '../config/options.ts';
import { applyMemoryPolicy } from '../harden/memory.ts';
import type { BlsCore } from '../signing/bls.ts';
import { openBlsCore } from '../signing/bls-open.ts';

export async function openSecretMemory(
  config: Config,
  { logger, blsCore }: World,
  opened: AsyncDisposableStack,
): Promise<BlsCore> {
  const log = logger.module('signing');
  const { mlock } = config.server;
  const core = await openBlsCore({ log, mlock, prefer: blsCore });
  opened.defer(() => core.close());
  applyMemoryPolicy(mlock, core, log);
  return core;
}
