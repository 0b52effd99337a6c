// Step "slashing protection": the configured store, bound to the network, with the grouping in front of it and pruning
// behind it. Also what the offline `slashing` commands open.

import { encodeHex } from '../api/hex.ts';
import type { World } from '../boot.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../signing/networks.ts';
import { SlashingProtection } from '../slashing/protection.ts';
import { openSqliteBackend } from '../slashing/sqlite.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { Telemetry } from './telemetry.ts';

export async function openSlashingProtection(
  config: Config,
  network: Network,
  world: World,
  telemetry: Pick<Telemetry, 'slashing'>,
  opened: AsyncDisposableStack,
): Promise<SlashingProtection> {
  const log = world.logger.module('slashing');
  const backend = await openSlashingBackend(config, network, world);
  const slashing = new SlashingProtection(backend, telemetry.slashing, { clock: world.clock, log });
  opened.defer(() => slashing.close());
  log.info({ backend: backend.name }, 'slashing protection is open');
  return slashing;
}

export async function openSlashingBackend(
  { anti_slashing: options }: Config,
  { genesisValidatorsRoot }: Network,
  { logger }: World,
): Promise<SlashingBackend> {
  const log = logger.module('slashing');
  switch (options.backend) {
    case 'sqlite':
      return openSqliteBackend(
        { path: options.path, genesisValidatorsRoot: encodeHex(genesisValidatorsRoot) },
        { log },
      );
    default:
      throw new Error(`anti_slashing.backend: ${options.backend} is not available yet`);
  }
}
