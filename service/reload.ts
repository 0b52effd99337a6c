// What a signer reads again while it runs, on SIGHUP or POST /reload: the tokens and policies of `static_auth` with
// `tls.known_clients`, the TLS files and the key folders. This order refuses revoked tokens first. All other options
// need a restart, and the log names those that changed. When something cannot be read, the version in force stays.

import type { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../common/observe/clock.ts';
import type { Log } from '../common/observe/log.ts';
import type { ReloadStatus } from '../signer/api/reload.ts';
import type { OpenReload } from '../signer/boot/parts.ts';
import type { ConfigurationRead } from '../signer/config/load.ts';
import { type Config, OPTION_PATHS, type OptionPath } from '../signer/config/options.ts';
import { wipeSecrets } from '../signer/config/values/secret.ts';
import { mountReload } from '../signer/http/routes/reload.ts';
import type { FilesystemLoad } from '../signer/keys/files/load-report.ts';
import { withKeysTakenOut } from '../signer/keys/management/stop.ts';

export const openReload: OpenReload = (
  config,
  { authorization, inFlight, listeners, loading, turns },
  { readConfiguration, logger, clock },
) => {
  const { keys: store, table, reload } = loading;
  if (readConfiguration === undefined || reload === undefined) return undefined;
  const { drain } = inFlight;
  const running = new Reload({
    config,
    readConfiguration,
    replaceTokens: authorization.replaceTokens,
    reloadCertificate: async () => (await listeners()?.reloadCertificate()) ?? true,
    // A key leaves as it does when it is deleted: not found any more, then the last signature under way ends.
    reloadKeys: () =>
      reload((gone) =>
        turns(gone, () =>
          withKeysTakenOut(gone, { store, table, drain }, async (copies) => {
            for (const publicKey of copies.keys()) store.remove(publicKey);
          }),
        ),
      ),
    clock,
    log: logger.module('server'),
  });
  return { request: () => running.request(), mount: (app) => mountReload(app, running) };
};

interface ReloadParts {
  readonly config: Config;
  readonly readConfiguration: () => ConfigurationRead;
  /** Undefined when tokens are in the state table. @throws Error when the signer would not start with them */
  readonly replaceTokens: ((config: Config) => void) | undefined;
  /** Answers whether all files could be used; it logs what is wrong with them. True without TLS files. */
  readonly reloadCertificate: () => Promise<boolean>;
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
    const problems: string[] = [];
    try {
      problems.push(...this.#reloadTokens());
      if (!(await reloadCertificate())) problems.push(TLS_REFUSED);
      const { failures } = await reloadKeys();
      if (failures.length > 0) problems.push(`${failures.length} keys could not be loaded; the log names their files`);
      if (problems.length === 0) this.#status = { status: 'completed', lastOperationTime: this.#now() };
      else this.#end('completed_with_errors', problems);
    } catch (error) {
      log.error({ error: messageOf(error) }, 'the reload failed: what it did not reach stays as it was');
      this.#end('failed', [...problems, 'the log of the signer says why']);
    }
  }

  #end(status: 'completed_with_errors' | 'failed', problems: readonly string[]): void {
    this.#status = { status, lastOperationTime: this.#now(), lastError: problems.join('; ') };
  }

  /** Answers what is wrong, in words for the operator who asked; the log has all of it. */
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

const TLS_REFUSED = 'the TLS files are refused, and the certificate in force stays; the log says why';

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Secrets are not compared. A listener that was opened without known clients asks no client for a certificate. */
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

// SIGHUP (`systemctl reload`): the signer reads again what may change while it runs. A SIGHUP during the start counts,
// too. The signer read the configuration when the start began, and may then wait long for a store. A token that was
// revoked meanwhile must not stay valid.

interface Reloads {
  reload(): void;
}

/** @param signals the process */
export function reloadOnHangUps(signals: Pick<EventEmitter, 'on'>, log: Log): { serve(signer: Reloads): void } {
  const signal = 'SIGHUP';
  let serving: Reloads | undefined;
  let isOwed = false;
  signals.on(signal, () => {
    isOwed = serving === undefined;
    log.info({ signal }, isOwed ? 'the signer is starting: it reloads when it serves' : 'reloading');
    serving?.reload();
  });
  return {
    serve(signer) {
      serving = signer;
      if (isOwed) signer.reload();
    },
  };
}
