// What a signer reads again while it runs, on SIGHUP or POST /reload: the tokens and policies of `static_auth` with
// `tls.known_clients`, the TLS files and the key folders. This order refuses revoked tokens first. All other options
// need a restart, and the log names those that changed. When something cannot be read, the version in force stays.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { ReloadStatus } from '../api/reload.ts';
import type { Loaded } from '../config/load.ts';
import { type Config, OPTION_PATHS, type OptionPath } from '../config/options.ts';
import { wipeSecrets } from '../config/values/secret.ts';
import type { FilesystemLoad } from '../keys/files/load-report.ts';
import { whileStopped } from '../keys/management/stop.ts';
import type { KeyTurns } from '../keys/turns.ts';
import type { InFlightSigning } from '../signing/in-flight.ts';
import type { Authorization } from './authorization.ts';
import type { LoadingKeys } from './keys.ts';
import type { OpenListeners } from './listeners/open-listeners.ts';
import type { World } from './world.ts';

export interface ReloadedParts {
  readonly authorization: Pick<Authorization, 'replaceTokens'>;
  readonly inFlight: InFlightSigning;
  /** Undefined until they are open. */
  readonly listeners: () => Pick<OpenListeners, 'reloadCertificate'> | undefined;
  readonly loading: LoadingKeys;
  readonly turns: KeyTurns;
}

/** Undefined where there is nothing to read again: in an enclave, and in a signer that starts sealed. */
export function openReload(
  config: Config,
  { authorization, inFlight, listeners, loading, turns }: ReloadedParts,
  { readConfiguration, logger, clock }: World,
): Reload | undefined {
  const { keys: store, table, reload } = loading;
  if (readConfiguration === undefined || reload === undefined) return undefined;
  const { drain } = inFlight;
  return new Reload({
    config,
    readConfiguration,
    replaceTokens: authorization.replaceTokens,
    reloadCertificate: async () => listeners()?.reloadCertificate(),
    // A key leaves as it does when it is deleted: not found any more, then the last signature under way ends.
    reloadKeys: () =>
      reload((gone) => turns(gone, () => whileStopped(gone, { store, table, drain }, async () => undefined))),
    clock,
    log: logger.module('server'),
  });
}

export interface ReloadParts {
  /** The configuration the signer started with. */
  readonly config: Config;
  /** As at the start: arguments, environment and file. */
  readonly readConfiguration: () => Loaded;
  /** Undefined when tokens are in the state table. @throws Error when the signer would not start with them */
  readonly replaceTokens: ((config: Config) => void) | undefined;
  /** Undefined without TLS files; it logs what it cannot read. */
  readonly reloadCertificate: () => Promise<void>;
  /** After the first load. */
  readonly reloadKeys: () => Promise<FilesystemLoad>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Reload {
  readonly #parts: ReloadParts;
  #status: ReloadStatus = { status: 'idle' };
  #running: Promise<void> | undefined;
  #again = false;

  constructor(parts: ReloadParts) {
    this.#parts = parts;
  }

  get status(): ReloadStatus {
    return this.#status;
  }

  /** Begin in the background. False: one is under way. */
  begin(): boolean {
    if (this.#running !== undefined) return false;
    this.#status = { status: 'running', lastOperationTime: this.#now() };
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.begin();
    });
    return true;
  }

  /** Begin, or begin once more when what is under way is over: it may have read the old files. */
  request(): void {
    if (!this.begin()) this.#again = true;
  }

  async #run(): Promise<void> {
    const { log, reloadCertificate, reloadKeys } = this.#parts;
    try {
      const refused = this.#reloadTokens();
      await reloadCertificate();
      const { failures } = await reloadKeys();
      const problems = [
        ...refused,
        ...(failures.length > 0 ? [`${failures.length} keys could not be loaded; the log names their files`] : []),
      ];
      if (problems.length === 0) this.#status = { status: 'completed', lastOperationTime: this.#now() };
      else this.#end('completed_with_errors', problems.join('; '));
    } catch (error) {
      log.error({ error: messageOf(error) }, 'the reload failed: what it did not reach stays as it was');
      this.#end('failed', 'the log of the signer says why');
    }
  }

  #end(status: 'completed_with_errors' | 'failed', lastError: string): void {
    this.#status = { status, lastOperationTime: this.#now(), lastError };
  }

  /** Answers what is wrong, in words for whoever asked; the log has all of it. */
  #reloadTokens(): readonly string[] {
    const { config, readConfiguration, replaceTokens, log } = this.#parts;
    const loaded = readConfiguration();
    if (!loaded.ok) {
      log.error({ violations: loaded.violations }, 'the configuration is refused: its tokens stay as they were');
      return ['the configuration is refused, and its tokens stay as they were; the log says why'];
    }
    try {
      const changed = changedOptions(config, loaded.config);
      if (changed.length > 0) log.warn({ options: changed }, 'these options were changed, and need a restart');
      replaceTokens?.(loaded.config);
      return [];
    } catch (error) {
      log.error({ error: messageOf(error) }, 'the declared tokens are refused and stay as they were');
      return ['the declared tokens are refused and stay as they were; the log says why'];
    } finally {
      wipeSecrets(loaded.config); // also those that only a start uses
    }
  }

  #now(): string {
    return new Date(this.#parts.clock.now()).toISOString();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Secrets are not compared. A listener that was opened without known clients asks nobody for a certificate. */
function changedOptions(before: Config, now: Config): OptionPath[] {
  const asksClients = before.tls.known_clients.length > 0;
  const isReread = (path: OptionPath): boolean =>
    path === 'static_auth' || (path === 'tls.known_clients' && asksClients);
  return OPTION_PATHS.filter(
    (path) => !isReread(path) && !isDeepStrictEqual(valueAt(before, path), valueAt(now, path)),
  );
}

function valueAt(config: Config, path: OptionPath): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], config);
}
