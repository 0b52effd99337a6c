// SIGHUP (`systemctl reload`): read again what may change while the signer runs. One that comes during the start counts
// too. The configuration was read when the start began, which may wait long for a store, and what was revoked since
// must not stay in force.

import type { EventEmitter } from 'node:events';
import type { Log } from '../../observe/log.ts';

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
