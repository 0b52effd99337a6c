// What the chamber routes do in this process: sealing, and the status put together from the parts that know
// (specification/custody.md#chamber-status).

import { toMilli } from '../../../observe/log.ts';
import type { ChamberStatus, SealAnswer } from '../../api/chamber.ts';
import { VERSION } from '../../api/version.ts';
import type { Latch } from '../../chamber/state-rows.ts';
import type { StoreBinding } from '../../chamber/store-binding.ts';
import type { Watcher } from '../../chamber/watcher.ts';
import type { Config } from '../../config/options.ts';
import type { ChamberRoutes } from '../../http/routes/chamber.ts';
import { countKeys } from '../../keys/counts.ts';
import type { BlsCore } from '../../signing/bls/bls.ts';
import { floorFields } from '../../slashing/jump.ts';
import type { SlashingProtection } from '../../slashing/protection.ts';
import type { StoreFloor } from '../../slashing/types.ts';
import type { Custody } from '../custody.ts';
import type { LoadingKeys } from '../keys.ts';
import { memoryPolicy } from '../secret-key-memory.ts';
import { parentsRisk } from '../slashing-protection/boot-jump.ts';
import type { World } from '../world.ts';

export interface StatusParts {
  /** Undefined without a signer state, as is the watcher with a refresh interval of 0. */
  readonly custody: Custody | undefined;
  readonly watcher: Watcher | undefined;
  readonly loading: Pick<LoadingKeys, 'keys' | 'table'>;
  readonly slashing: Pick<SlashingProtection, 'backend' | 'health'>;
  readonly binding: Pick<StoreBinding, 'status'> | undefined;
  /** What the jump at boot refuses. */
  readonly floor: StoreFloor | null;
  readonly core: Pick<BlsCore, 'unlockedKeys'>;
}

export function chamberRoutes(
  config: Pick<Config, 'anti_slashing' | 'network' | 'server' | 'tee'>,
  parts: StatusParts,
  { clock, enclave }: Pick<World, 'clock' | 'enclave'>,
): ChamberRoutes {
  const { custody } = parts;
  const startedAt = clock.monotonic();
  return {
    seal: custody && (async (reason, accessor) => sealAnswer(await custody.chamber.seal(reason, accessor))),
    status: async () => ({
      ...(await custodyStatus(parts)),
      keys: [...countKeys(parts.loading.keys, parts.loading.table?.loader)],
      memory: { mlock: memoryPolicy(config.server, enclave), unlocked_keys: parts.core.unlockedKeys() },
      slashing: { ...slashingStatus(parts), warning: enclave === undefined ? null : parentsRisk(config) },
      network: config.network.name,
      version: VERSION,
      uptime_seconds: Math.round((clock.monotonic() - startedAt) / 1000),
      tee: {
        platform: config.tee.platform,
        measurements: enclave?.measurements ?? {},
        configuration_digest: enclave?.configurationDigest ?? null,
      },
    }),
  };
}

/** Without a signer state there is nothing to unseal, and no latch. */
async function custodyStatus({
  custody,
  watcher,
}: StatusParts): Promise<Pick<ChamberStatus, 'state' | 'custody' | 'latch' | 'state_watcher'>> {
  if (custody === undefined) return { state: 'Unsealed', custody: null, latch: null, state_watcher: null };
  const { chamber, ceremony, keyHealth } = custody;
  const keys = await keyHealth();
  return {
    state: chamber.state,
    custody: {
      generation: ceremony.generation,
      threshold: ceremony.kmsThreshold,
      keys: keys.map(({ arns, status }) => ({ arns: [...arns], status })),
      keys_reachable: keys.filter(({ status }) => status === 'reachable').length,
    },
    latch: chamber.latch === undefined ? null : latchOf(chamber.latch),
    state_watcher: watcher === undefined ? null : { stale: watcher.stale, age_seconds: toMilli(watcher.ageSeconds()) },
  };
}

function slashingStatus({ slashing, binding, floor }: StatusParts): Omit<ChamberStatus['slashing'], 'warning'> {
  const { backend, health } = slashing;
  return {
    backend: backend.name,
    status: health.status,
    since: new Date(health.since).toISOString(),
    store: binding?.status.store ?? null,
    bound: binding?.status.isBound ?? null,
    jumped_at_boot: floor && floorFields(floor),
  };
}

function sealAnswer({ reason, sealedAt }: Latch): SealAnswer {
  return { state: 'Sealed', sealed_at: sealedAt, reason };
}

function latchOf({ reason, accessor, sealedAt }: Latch): NonNullable<ChamberStatus['latch']> {
  return { sealed_at: sealedAt, reason, accessor };
}
