// Step "receipts": the log of this start's decisions, where it is kept, and its heads by timer. It exists only with
// `receipts.storage`. The first head is made before anything is signed. A storage that fails stops a signer only with
// `receipts.required`.

import { inTime } from '../../common/flow/in-time.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import type { Log } from '../../common/observe/log.ts';
import type { ChamberStatus } from '../api/chamber.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { HealthCheck } from '../api/health.ts';
import type { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { Config } from '../config/options.ts';
import { type RecordDecision, recordsDecisions } from '../http/decisions.ts';
import type { ReceiptRoutes } from '../http/routes/receipts.ts';
import { openReceiptLog, type ReceiptLog, type SignerFacts } from '../receipts/log.ts';
import { removeOldEntries } from '../receipts/retention.ts';
import type { ReceiptStorage } from '../receipts/storage.ts';
import type { Network } from '../sign/networks.ts';
import { readIncarnations } from '../slashing/incarnation.ts';
import type { BareStore } from '../slashing/restraints.ts';
import type { StoreIdentity } from '../slashing/types.ts';
import type { Custody } from './custody.ts';
import type { Ending } from './ending.ts';
import { every } from './every.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface Receipts {
  readonly routes: ReceiptRoutes;
  readonly record: RecordDecision;
  /** Why nothing may be signed now. */
  readonly hindrance: () => Extract<ErrorReason, 'receipts_unavailable'> | undefined;
  readonly check: () => HealthCheck;
  readonly status: () => NonNullable<ChamberStatus['receipts']>;
}

interface ReceiptsParts {
  readonly binding: Pick<StoreBinding, 'status'> | undefined;
  readonly custody: Custody | undefined;
  readonly ending: Pick<Ending, 'leftMs'>;
  /** Undefined while sealed. */
  readonly bareStore: Pick<BareStore, 'name' | 'identity'> | undefined;
  readonly network: Pick<Network, 'genesisValidatorsRoot'>;
  /** Undefined in a program without a disk. */
  readonly openFolder: ((path: string) => ReceiptStorage) | undefined;
  readonly stateful: Pick<StatefulAuthenticator, 'revision'> | undefined;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

/** About 30 MB of votes. */
const MAX_WAITING_ENTRIES = 131_072;
const HEADS_BETWEEN_REMOVALS = 10;
/** Of the time that is left at the end, for the last head; the slashing store closes after it. */
const LAST_HEAD_SHARE = 0.4;

export async function openReceipts(
  config: Config['receipts'],
  parts: ReceiptsParts,
  { clock, enclave, logger }: World,
  opened: AsyncDisposableStack,
): Promise<Receipts | undefined> {
  const storage = await storageOf(config, parts);
  if (storage === undefined) return undefined;
  const log = logger.module('server');
  const identity = await identityOf(parts, log);
  const receiptLog = await openReceiptLog(
    {
      intervalSeconds: config.interval_seconds,
      maxWaitingEntries: MAX_WAITING_ENTRIES,
      required: config.required,
      retentionDays: config.retention_days ?? null,
    },
    {
      genesisValidatorsRoot: encodeHex(parts.network.genesisValidatorsRoot),
      attest: enclave === undefined ? undefined : (userData) => enclave.nsm.attest({ userData }),
      storage,
      facts: () => factsOf(identity, parts),
      clock,
      log,
    },
  );
  const { metrics } = parts.telemetry;
  const countHead = (isKept: boolean): void => metrics.receiptHeads.inc({ outcome: isKept ? 'kept' : 'failed' });
  countHead(receiptLog.latestHead !== undefined);
  opened.defer(async () => {
    const isKept = await inTime(receiptLog.close(), parts.ending.leftMs() * LAST_HEAD_SHARE, () => false);
    if (!isKept) log.warn({ boot: receiptLog.boot }, 'receipts: the last head is not kept; the log has no end');
  });
  const intervalMs = config.interval_seconds * 1000;
  every(intervalMs, async () => countHead(await receiptLog.keepHead()), opened);
  if (config.retention_days !== undefined) {
    every(intervalMs * HEADS_BETWEEN_REMOVALS, () => removeOldEntries(storage, receiptLog.latestHead, log), opened);
  }
  metrics.onRender(() => {
    metrics.receiptHeadAgeSeconds.set(receiptLog.headAgeSeconds);
    metrics.receiptEntriesInMemory.set(receiptLog.entriesInMemory);
    metrics.receiptDecisions.reach(receiptLog.size, { outcome: 'logged' });
    metrics.receiptDecisions.reach(receiptLog.lost, { outcome: 'lost' });
  });
  const { boot } = receiptLog;
  log.info({ boot, storage: config.storage, kind: receiptLog.kind }, 'the log of receipts is open');
  return {
    routes: { log: receiptLog, storage },
    record: recordsDecisions(receiptLog),
    hindrance: () => (config.required && !receiptLog.isKept ? 'receipts_unavailable' : undefined),
    check: () => checkOf(receiptLog, config.required),
    status: () => statusOf(receiptLog),
  };
}

/** The rules have seen to the path and the table. */
async function storageOf({ storage, path }: Config['receipts'], { custody, openFolder }: ReceiptsParts) {
  if (storage === undefined) return undefined;
  if (storage === 'state_table' && custody !== undefined) {
    const { receiptsInStateTable } = await import('../receipts/state-table.ts');
    return receiptsInStateTable(custody.client, custody.table.tableName);
  }
  if (storage === 'folder' && path !== undefined && openFolder !== undefined) return openFolder(path);
  throw new Error('receipts.storage names nothing that this program has');
}

/** A store that does not answer now is known later, or never: its part of the heads is null. */
async function identityOf({ bareStore }: ReceiptsParts, log: Log): Promise<StoreIdentity | undefined> {
  if (bareStore === undefined || bareStore.name === 'noop') return undefined;
  return await bareStore.identity().catch((error: unknown) => {
    log.warn({ err: error }, 'receipts: the slashing store does not say which it is; the heads do not, either');
    return undefined;
  });
}

function factsOf(
  identity: StoreIdentity | undefined,
  { binding, custody, bareStore, stateful }: ReceiptsParts,
): SignerFacts {
  const { store = null, binding: number = null } = binding?.status ?? {};
  const name = bareStore?.name ?? '';
  const incarnation = readIncarnations(identity?.incarnation ?? '').held[0] ?? 'none';
  const bound = store === null ? null : { store: `${name}:${store}`, revision: `binding:${number ?? 'none'}` };
  const own =
    identity === undefined ? null : { store: `${name}:${identity.id}`, revision: `incarnation:${incarnation}` };
  return {
    slashing: bound ?? own,
    latch: custody === undefined ? null : custody.chamber.state === 'Sealed' ? 'sealed' : 'open',
    auth_revision: stateful?.revision ?? null,
  };
}

function checkOf(receiptLog: ReceiptLog, isRequired: boolean): HealthCheck {
  if (receiptLog.isKept) return { id: 'receipts', status: 'UP' };
  const { uncovered_entries: entries, uncovered_seconds: seconds, lost } = statusOf(receiptLog);
  const detail = `the log of receipts is not kept: ${entries} decisions of ${seconds} s are in no kept head, ${lost} are lost`;
  return { id: 'receipts', status: isRequired ? 'DOWN' : 'DEGRADED', detail };
}

function statusOf({ uncovered, lost }: ReceiptLog): NonNullable<ChamberStatus['receipts']> {
  return { uncovered_entries: uncovered.entries, uncovered_seconds: Math.round(uncovered.seconds), lost };
}
