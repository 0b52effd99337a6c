// The boot order, as one list of awaited steps. It reads like the runbook: each step gives a result, or ends the start with
// a message that names the step. What a step opens is closed in the opposite order, also when a later step fails.
// It trusts a configuration that config/ has checked.

import type { Clock } from '../../observe/clock.ts';
import type { Logger } from '../../observe/logger.ts';
import type { Config } from '../config/options.ts';
import { inFlightSigning } from '../signing/in-flight.ts';
import { openAuthorization } from './authorization.ts';
import { startBackground } from './background.ts';
import { type AwsAccess, openAwsAccess } from './credentials.ts';
import { openCustody, watchState } from './custody.ts';
import { openEgressAliases } from './egress-aliases.ts';
import type { Enclave } from './enclave/measure.ts';
import { createEnding } from './ending.ts';
import { openApplication, openPermits } from './http-application.ts';
import { type LoadingKeys, startLoadingKeys } from './keys.ts';
import { type OpenListeners, openListeners } from './listeners.ts';
import { networkOf } from './network.ts';
import { openSecretMemory } from './secret-key-memory.ts';
import { openSlashingProtection } from './slashing-protection.ts';
import { filterSystemCalls } from './system-call-filter.ts';
import { openTelemetry } from './telemetry.ts';
import { clockBy, openTime } from './time.ts';
import { warmUp } from './warm-up.ts';

export interface World {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The BLS core to sign with; the native one, when it is built, unless given. */
  readonly blsCore?: 'native' | 'portable';
  /** Inside an enclave: what measureEnclave found there. */
  readonly enclave?: Enclave;
  /** How AWS is reached, once the step "credentials" has seen to it; until then, and for commands, as the SDK finds it. */
  readonly aws?: AwsAccess;
}

/** What changes while the signer runs and everything else asks for. */
export interface SignerState {
  shuttingDown: boolean;
  /** Key files that could not be loaded. */
  keyFailures: number;
}

export interface RunningSigner {
  readonly listeners: OpenListeners;
  /** Resolves when every configured key source has been read once, or shutDown() ends that; rejects when one cannot be read. */
  readonly keysLoaded: Promise<void>;
  /** Refuse new work, finish what is under way, close everything: all within the grace time. */
  shutDown(): Promise<void>;
}

/** A start that cannot go on: the step, and what to do about it. */
export class StartupError extends Error {
  constructor(stepName: string, cause: unknown) {
    super(`${stepName}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'StartupError';
  }
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

async function runSteps(config: Config, given: World, opened: AsyncDisposableStack): Promise<RunningSigner> {
  const state: SignerState = { shuttingDown: false, keyFailures: 0 };
  const ending = createEnding(given.clock);

  const telemetry = await step('telemetry', () => openTelemetry(config, given, ending, opened));
  await step('system call filter', () => filterSystemCalls(config, given, telemetry));
  const memory = await step('secret key memory', () => openSecretMemory(config, given, telemetry, opened));
  const { core } = memory;
  const network = await step('network', () => networkOf(config));
  await step('egress aliases', () => openEgressAliases(config, given, telemetry, opened));
  const aws = await step('credentials', () => openAwsAccess(config, given, telemetry));
  const world: World = { ...given, aws };
  const time = await step('time', () => openTime(world, opened));
  const custody = await step('custody', () => openCustody(config, world, telemetry, opened));
  const { slashing, binding, floor } = await step('slashing protection', () =>
    openSlashingProtection({ config, network, custody, time, ending }, world, telemetry, opened),
  );
  const { authenticator, stateful } = await step('authorization', () =>
    openAuthorization(config, custody, { ...world, clock: clockBy(time, world.clock) }, telemetry),
  );
  const loading = await step('keys', () =>
    startLoadingKeys({ config, memory, custody, state }, world, telemetry, opened),
  );
  const watcher = await step('state watcher', () =>
    watchState({ config, custody, auth: stateful }, world, telemetry, opened),
  );
  const permits = openPermits(config);
  const inFlight = inFlightSigning();
  const parts = {
    authenticator,
    binding,
    core,
    custody,
    floor,
    inFlight,
    loading,
    network,
    permits,
    slashing,
    state,
    stateful,
    telemetry,
    watcher,
  };
  const application = await step('HTTP application', () => openApplication(config, parts, world));
  await step('warm-up', () => warmUp(network));
  const listeners = await step('listeners', () => openListeners(config, application, telemetry, world, opened));
  startBackground(
    config,
    { core, loading, permits, slashing, listeners, logger: world.logger, enclave: world.enclave },
    telemetry,
    opened,
  );

  const keysLoaded = announceWhenLoaded(loading, world).catch((error: unknown) => {
    const ended = state.shuttingDown || loading.keys.state === 'sealed'; // sealing stops a load, and the signer stays, sealed
    if (!ended) throw new StartupError('keys', error);
  });
  return {
    listeners,
    keysLoaded,
    async shutDown() {
      state.shuttingDown = true;
      const forRequestsMs = ending.begin(config.server.graceful_shutdown_timeout_seconds * 1000);
      await listeners.closeGracefully(forRequestsMs / 1000);
      if (await ending.inTime(opened.disposeAsync())) return;
      world.logger.module('server').error({}, 'the grace time is over: what does not close is left behind');
    },
  };
}

/** @throws StartupError with the step's name */
export async function step<T>(name: string, run: () => Promise<T> | T): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new StartupError(name, error);
  }
}

async function announceWhenLoaded({ loaded, keys }: LoadingKeys, { logger }: World): Promise<void> {
  await loaded;
  const log = logger.module('server');
  if (keys.state === 'sealed') log.warn({}, 'running sealed: nothing is signed');
  else log.info({ keys: keys.publicKeys().length }, 'ready');
}
