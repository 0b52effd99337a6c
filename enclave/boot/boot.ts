// The boot order, as one list of awaited steps. Each step returns a result, or ends the start with a message that names
// the step. The signer closes what the steps opened in the opposite order, also when a later step fails. A step takes
// what it needs of these, in this order: its sections of the configuration, the results of earlier steps, the world,
// and the stack that closes what it opens. It trusts a configuration that config/ has checked.

import type { Config } from '../config/options.ts';
import { keyTurns } from '../keys/turns.ts';
import { inFlightSigning } from '../signing/in-flight.ts';
import { openAuthorization } from './authorization.ts';
import { startBackground } from './background.ts';
import { openAwsAccess } from './credentials.ts';
import { openCustody } from './custody.ts';
import { openEgressAliases } from './egress-aliases.ts';
import { createEnding } from './ending.ts';
import { openApplication } from './http-application.ts';
import { type LoadingKeys, startLoadingKeys } from './keys.ts';
import type { OpenListeners } from './listeners/open-listeners.ts';
import { openListeners } from './listeners.ts';
import { networkOf } from './network.ts';
import { openPermits } from './permits.ts';
import { openReload } from './reload.ts';
import { openSecretMemory } from './secret-key-memory.ts';
import { openSlashingProtection } from './slashing-protection.ts';
import { watchState } from './state-watcher.ts';
import { StartupError, step } from './step.ts';
import { filterSystemCalls } from './system-call-filter.ts';
import { openTelemetry } from './telemetry.ts';
import { openTime } from './time.ts';
import { warmUp } from './warm-up.ts';
import type { SignerState, World } from './world.ts';

export interface RunningSigner {
  readonly listeners: OpenListeners;
  /**
   * Resolves when every configured key source has been read once, or shutDown() ends that; rejects when one cannot be
   * read.
   */
  readonly keysLoaded: Promise<void>;
  /** Read again what may change while the signer runs; nothing where nothing may. */
  reload(): void;
  /** Refuse new work, finish what is under way, close everything: all within the grace time. */
  shutDown(): Promise<void>;
}

/** @throws StartupError, after closing what was opened */
export async function boot(config: Config, world: World): Promise<RunningSigner> {
  const opened = new AsyncDisposableStack();
  try {
    return await runSteps(config, world, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function runSteps(config: Config, world: World, opened: AsyncDisposableStack): Promise<RunningSigner> {
  const state: SignerState = { shuttingDown: false, keyFailures: 0 };
  const ending = createEnding(world.clock);
  const inFlight = inFlightSigning();
  const turns = keyTurns();
  let open: OpenListeners | undefined;

  const telemetry = await step('telemetry', () => openTelemetry(config.opentelemetry, { ending }, world, opened));
  await step('system call filter', () => filterSystemCalls(config.server, { telemetry }, world));
  const memory = await step('secret key memory', () => openSecretMemory(config, { telemetry }, world, opened));
  const network = await step('network', () => networkOf(config, world.logger.module('server')));
  await step('egress aliases', () => openEgressAliases(config.tee.nitro.egress, { telemetry }, world, opened));
  const aws = await step('credentials', () => openAwsAccess(config, { telemetry }, world));
  const time = await step('time', () => openTime(world, opened));
  const custody = await step('custody', () => openCustody(config, { aws, network, telemetry }, world, opened));
  const { slashing, binding, floor } = await step('slashing protection', () =>
    openSlashingProtection(config, { aws, custody, ending, network, telemetry, time }, world, opened),
  );
  const authorization = await step('authorization', () =>
    openAuthorization(config, { custody, telemetry, time }, world),
  );
  const { authenticator, stateful } = authorization;
  const loading = await step('keys', () =>
    startLoadingKeys(config.key_sources, { aws, custody, memory, state, telemetry }, world, opened),
  );
  const watcher = await step('state watcher', () =>
    watchState(config.signer_state, { auth: stateful, custody, telemetry }, world, opened),
  );
  const permits = await step('permits', () => openPermits(config.signing));
  const reload = openReload(config, { authorization, inFlight, listeners: () => open, loading, turns }, world);
  const application = await step('HTTP application', () =>
    openApplication(
      config,
      {
        authenticator,
        binding,
        core: memory.core,
        custody,
        floor,
        inFlight,
        loading,
        network,
        permits,
        reload,
        slashing,
        state,
        stateful,
        telemetry,
        turns,
        watcher,
      },
      world,
    ),
  );
  await step('warm-up', () => warmUp(network));
  const listeners = await step('listeners', () =>
    openListeners(config, { application, authenticator, telemetry }, world, opened),
  );
  open = listeners;
  startBackground(config, { core: memory.core, listeners, loading, permits, slashing, telemetry }, world, opened);

  const keysLoaded = announceWhenLoaded(loading, world).catch((error: unknown) => {
    // sealing stops a load, and the signer stays, sealed
    const ended = state.shuttingDown || loading.keys.state === 'sealed';
    if (!ended) throw new StartupError('keys', error);
  });
  return {
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

async function announceWhenLoaded({ loaded, keys }: LoadingKeys, { logger }: World): Promise<void> {
  await loaded;
  const log = logger.module('server');
  if (keys.state === 'sealed') log.warn({}, 'running sealed: nothing is signed');
  else log.info({ keys: keys.publicKeys().length }, 'ready');
}
