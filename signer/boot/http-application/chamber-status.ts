// What the chamber routes do in this process (specification/custody.md#chamber-status).

import type { AttestedKey } from '../../../common/attestation/key-evidence.ts';
import { toMilli } from '../../../common/observe/log.ts';
import type { ChamberStatus, SealAnswer } from '../../api/chamber.ts';
import { ERROR_REASONS, type ErrorReason } from '../../api/errors.ts';
import { VERSION } from '../../api/version.ts';
import type { Latch } from '../../chamber/state-rows.ts';
import type { Config } from '../../config/options.ts';
import type { ChamberRoutes } from '../../http/routes/chamber.ts';
import { countKeys } from '../../keys/counts.ts';
import { hindranceOf } from '../../sign/right.ts';
import { floorFields } from '../../slashing/jump.ts';
import { REPORTED_PCRS } from '../../tee/nsm.ts';
import type { Custody } from '../custody.ts';
import { memoryPolicy } from '../secret-key-memory.ts';
import { parentsRisk } from '../slashing-protection/start-doubts.ts';
import { clockTrouble } from '../slashing-protection.ts';
import type { World } from '../world.ts';
import type { Parts } from './parts.ts';

export function chamberRoutes(
  config: Pick<Config, 'anti_slashing' | 'network' | 'server' | 'tee'>,
  parts: Parts,
  { clock, enclave }: Pick<World, 'clock' | 'enclave'>,
): ChamberRoutes {
  const { custody } = parts;
  const hindrance = hindranceOf(parts.right, parts.state);
  const startedAt = clock.monotonic();
  return {
    seal: custody && (async (reason, accessor) => sealAnswer(await custody.chamber.seal(reason, accessor))),
    status: async () => ({
      ...(await custodyStatus(parts)),
      hindrance: textOf(hindrance()),
      keys: [...countKeys(parts.loading.keys, parts.loading.table?.loader)],
      keys_loading: parts.loading.progress() ?? null,
      memory: { mlock: memoryPolicy(config.server, enclave), unlocked_keys: parts.core.unlockedKeys() },
      slashing: { ...slashingStatus(parts), warning: enclave === undefined ? null : parentsRisk(config) },
      network: config.network.name,
      version: VERSION,
      uptime_seconds: Math.round((clock.monotonic() - startedAt) / 1000),
      receipts: parts.receipts?.status() ?? null,
      tee: {
        platform: config.tee.platform,
        measurements: enclave?.measurements ?? {},
        configuration_digest: enclave?.configurationDigest ?? null,
        parent_writes_tables: config.tee.nitro.unsafe_parent_writes_tables,
      },
    }),
  };
}

function textOf(reason: ErrorReason | undefined): string | null {
  return reason === undefined ? null : ERROR_REASONS[reason].message;
}

async function custodyStatus({
  custody,
  watcher,
}: Parts): Promise<Pick<ChamberStatus, 'state' | 'custody' | 'latch' | 'state_watcher'>> {
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
      ...(chamber.state === 'Sealed' ? NO_ORIGIN : originStatus(custody)),
    },
    latch: chamber.latch === undefined ? null : latchOf(chamber.latch),
    state_watcher: watcher === undefined ? null : { stale: watcher.stale, age_seconds: toMilli(watcher.ageSeconds()) },
  };
}

type OriginStatus = Pick<NonNullable<ChamberStatus['custody']>, 'master_key' | 'root_token' | 'seal_removal'>;

const NO_ORIGIN: OriginStatus = { master_key: null, root_token: null, seal_removal: null };

/** Also for a demonstration, which has no server. */
export function originStatus({ origin, isNewTable }: Pick<Custody, 'origin' | 'isNewTable'>): OriginStatus {
  const last = origin?.links.at(-1);
  if (origin === undefined || last === undefined) return NO_ORIGIN;
  const { links, rootToken, sealRemoval } = origin;
  return {
    master_key: { made_by_this_start: isNewTable, record: last.record, links: links.map(attestedFields) },
    root_token: rootToken === undefined ? null : attestedFields(rootToken),
    seal_removal: sealRemoval === undefined ? null : attestedFields(sealRemoval),
  };
}

type Attesting = AttestedKey & {
  readonly document: Buffer;
  readonly deployment: { readonly network: string; readonly id: string };
};

function attestedFields<Statement extends Attesting>(attested: Statement) {
  const { madeAt, moduleId, pcrs, document, deployment, ...statement } = attested;
  const { network, id } = deployment;
  return {
    ...statement,
    deployment: { network, id },
    made_at: new Date(madeAt).toISOString(),
    module_id: moduleId,
    measurements: Object.fromEntries(
      REPORTED_PCRS.flatMap((index) => {
        const value = pcrs.get(index);
        return value === undefined ? [] : [[String(index), value.toString('hex')]];
      }),
    ),
    document: document.toString('base64'),
  };
}

function slashingStatus({
  slashing: { health, ahead },
  store,
  binding,
  trouble,
}: Parts): Omit<ChamberStatus['slashing'], 'warning'> {
  const floorOfStart = trouble?.doubts.floorOfStart ?? null;
  return {
    backend: store.name,
    status: health.status,
    since: new Date(health.since).toISOString(),
    store: binding?.status.store ?? null,
    bound: binding?.status.isBound ?? null,
    jumped_at_boot: floorOfStart && floorFields(floorOfStart),
    trouble: clockTrouble(trouble) ?? trouble?.doubts.unsettled?.causes.join(', ') ?? null,
    keys_ahead: [...ahead.keys]
      .slice(0, MAX_KEYS_AHEAD)
      .map(([publicKey, marks]) => ({ public_key: publicKey, ...floorFields(marks) })),
  };
}

/** What an operator reads; the commands of the store name all. */
const MAX_KEYS_AHEAD = 100;

function sealAnswer({ reason, sealedAt }: Latch): SealAnswer {
  return { state: 'Sealed', sealed_at: sealedAt, reason };
}

function latchOf({ reason, accessor, sealedAt }: Latch): NonNullable<ChamberStatus['latch']> {
  return { sealed_at: sealedAt, reason, accessor };
}
