// The boot order, as one list of awaited steps (specification/operating.md#boot). What the steps opened is closed in
// the opposite order, also when a later step fails.

import { plural } from '../../common/command-line/printable.ts';
import type { BlsCore } from '../bls/bls.ts';
import { networkOf } from '../config/network.ts';
import type { Config } from '../config/options.ts';
import { keyTurns } from '../keys/turns.ts';
import { parseSignRequest } from '../operations/parse.ts';
import { computeSigningRoot } from '../sign/message-root.ts';
import type { Network } from '../sign/networks.ts';
import { createPermits, type Permits } from '../sign/permits.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { RestrainedStore } from '../slashing/restraints.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import { inFlightSigning } from '../tenure.ts';
import { openAuthorization } from './authorization.ts';
import { startBackground, watchState } from './background.ts';
import { createEnding } from './ending.ts';
import { openApplication } from './http-application.ts';
import { type LoadingKeys, startLoadingKeys } from './keys.ts';
import type { OpenListeners } from './open-listeners.ts';
import type { SignerParts } from './parts.ts';
import { openReceipts } from './receipts.ts';
import { openSecretMemory } from './secret-key-memory.ts';
import { openSlashingProtection } from './slashing-protection.ts';
import { StartupError, stepsInTime } from './step.ts';
import { filterSystemCalls } from './system-call-filter.ts';
import { openTelemetry } from './telemetry.ts';
import type { SignerState, World } from './world.ts';

export interface BootedSigner {
  readonly core: BlsCore;
  readonly listeners: OpenListeners;
  /** Rejects when a key source cannot be read; shutDown() ends the load. */
  readonly keysLoaded: Promise<void>;
  reload(): void;
  shutDown(): Promise<void>;
}

export async function boot(config: Config, parts: SignerParts, world: World): Promise<BootedSigner> {
  const opened = new AsyncDisposableStack();
  try {
    return await runSteps(config, parts, world, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function runSteps(
  config: Config,
  parts: SignerParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<BootedSigner> {
  const { openBlsCore, openKeyFiles, stores } = parts;
  const step = stepsInTime(world.logger.module('server'));
  const state: SignerState = { shuttingDown: false, keyFailures: 0 };
  const ending = createEnding(world.clock);
  const inFlight = inFlightSigning();
  const turns = keyTurns();
  let listening: OpenListeners | undefined;

  const otherNames = parts.otherMetricNames?.(config.server, world.clock.monotonic);
  const telemetry = await step('telemetry', () =>
    openTelemetry(config.opentelemetry, { ending, otherNames }, world, opened),
  );
  await step('system call filter', () => filterSystemCalls(config.server, { telemetry }, world));
  const memory = await step('secret key memory', () =>
    openSecretMemory(config, { openBlsCore, telemetry }, world, opened),
  );
  const network = await step('network', () => networkOf(config, parts.readConfigFile, world.logger.module('server')));
  await step('egress aliases', () => parts.openEgress(config.tee.nitro.egress, { telemetry }, world, opened));
  const aws = await step('credentials', () => parts.openAwsAccess(config, { telemetry }, world));
  const time = await step('time', () => parts.openTime(world, opened));
  const { table: tableName } = config.signer_state;
  const custody = await step('custody', async () => {
    if (tableName === undefined) return undefined;
    const { openCustody } = await import('./custody.ts');
    return await openCustody(config, { aws, network, tableName, telemetry }, world, opened);
  });
  const protection = await step('slashing protection', () =>
    openSlashingProtection(config, { aws, custody, ending, network, stores, telemetry, time }, world, opened),
  );
  const { slashing, store, bareStore, binding, trouble, right } = protection;
  const authorization = await step('authorization', () =>
    openAuthorization(config, { custody, readKnownClients: parts.readKnownClients, telemetry, time }, world),
  );
  const { authenticator, stateful } = authorization;
  const loading = await step('keys', () =>
    startLoadingKeys(
      config.key_sources,
      { aws, custody, memory, openKeyFiles, slashing: store, state, telemetry },
      world,
      opened,
    ),
  );
  const watcher = await step('state watcher', () =>
    watchState(config.signer_state, { auth: stateful, custody, telemetry }, world, opened),
  );
  right.watcher = watcher;
  const receipts = await step('receipts', () =>
    openReceipts(
      config.receipts,
      { binding, custody, ending, bareStore, network, openFolder: parts.openReceiptsFolder, stateful, telemetry },
      world,
      opened,
    ),
  );
  right.receipts = receipts;
  const permits = await step('permits', () => openPermits(config.signing));
  const reload = parts.openReload?.(
    config,
    { authorization, inFlight, listeners: () => listening, loading, turns },
    world,
  );
  const application = await step('HTTP application', () =>
    openApplication(
      config,
      {
        ...protection,
        ...authorization,
        ...{ custody, inFlight, loading, network, permits, receipts, state, telemetry, turns, watcher },
        core: memory.core,
        describeRoutes: parts.describeRoutes,
        mountAccounts: parts.mountAccounts,
        mountOwn: reload?.mount,
      },
      world,
    ),
  );
  await step('warm-up', () => warmUp(network));
  const listeners = await step('listeners', () =>
    parts.openListeners(config, { application, authenticator, telemetry }, world, opened),
  );
  listening = listeners;
  startBackground(
    config,
    { core: memory.core, listeners, loading, permits, slashing, telemetry, trouble },
    world,
    opened,
  );

  const keysLoaded = announceWhenLoaded(loading, { slashing, store, state }, world).catch((error: unknown) => {
    // sealing stops a load, and the signer stays, sealed
    const ended = state.shuttingDown || loading.keys.state === 'sealed';
    if (!ended) throw new StartupError('keys', error);
  });
  return {
    core: memory.core,
    listeners,
    keysLoaded,
    reload: () => reload?.request(),
    async shutDown() {
      state.shuttingDown = true;
      const forRequestsMs = ending.begin(config.server.graceful_shutdown_timeout_seconds * 1000);
      await listeners.closeGracefully(forRequestsMs / 1000);
      if (await ending.inTime(opened.disposeAsync())) return;
      world.logger.module('server').error({}, 'the grace time is over: what does not close is left behind');
    },
  };
}

interface Announced {
  readonly slashing: Pick<SlashingProtection, 'lookAhead'>;
  readonly store: Pick<RestrainedStore, 'name'>;
  readonly state: SignerState;
}

async function announceWhenLoaded({ loaded, keys }: LoadingKeys, parts: Announced, world: World): Promise<void> {
  await loaded;
  const log = world.logger.module('server');
  if (keys.state === 'sealed') {
    log.warn({}, 'running sealed: nothing is signed');
    return;
  }
  const loadedKeys = keys.publicKeys();
  const { keyFailures: failures } = parts.state;
  if (failures === 0) log.info({ keys: loadedKeys.length }, 'ready');
  else {
    const message = `ready, and ${failures} of ${loadedKeys.length + failures} keys could not be loaded`;
    log.warn({ keys: loadedKeys.length, failures }, message);
  }
  if (loadedKeys.length + failures === 0) log.warn({}, 'no key was found: nothing is signed before one is added');
  void sayUnrecorded(loadedKeys, parts, world);
}

/** With more it is not told who has no record: of all that the store has, each mark would be held. */
const MOST_KEYS_LOOKED_AT = 10_000;

/** The last line of a start, where a person who brought keys from elsewhere looks. The start does not wait for it. */
async function sayUnrecorded(keys: readonly PublicKeyHex[], { slashing, store }: Announced, world: World) {
  const isAsked = store.name !== 'noop' && keys.length <= MOST_KEYS_LOOKED_AT;
  const { length } = await slashing.lookAhead(isAsked ? keys : []);
  if (length === 0) return;
  world.logger
    .module('server')
    .warn(
      { keys: length },
      `the slashing store has no readable record of ${plural(length, 'key')}. If they signed elsewhere before, stop this ` +
        `signer now, and import their record: strongroom slashing import FILE -c ${world.configurationFile ?? 'CONFIG'}`,
    );
}

export function openPermits({ max_concurrent_jobs, queue_buffer_size, priority }: Config['signing']): Permits {
  // Without operations nothing would ever take the pool's permits (config/warnings.ts says so).
  const hasPriority = priority.enabled && priority.operations.length > 0;
  return createPermits({
    maxConcurrentJobs: max_concurrent_jobs,
    queueLimit: queue_buffer_size,
    priorityJobs: hasPriority ? priority.max_concurrent_jobs : 0,
  });
}

// Otherwise the first request of a process would pay for the parser and the hasher (60 ms measured).

const ROOT = `0x${'00'.repeat(32)}`;
const SAMPLE = {
  type: 'ATTESTATION',
  fork_info: {
    fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
    genesis_validators_root: ROOT,
  },
  attestation: {
    slot: '0',
    index: '0',
    beacon_block_root: ROOT,
    source: { epoch: '0', root: ROOT },
    target: { epoch: '0', root: ROOT },
  },
};

function warmUp(network: Network): void {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(SAMPLE)));
  if (parsed.kind === 'refused') throw new Error(`the sample request is refused: ${parsed.hint}`);
  computeSigningRoot(parsed.request, network);
}
