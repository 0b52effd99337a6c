// SIGHUP (`systemctl reload`): the signer reads again what may change while it runs. A SIGHUP during the start counts,
// too. The signer read the configuration when the start began, and may then wait long for a store. A token that was
// revoked meanwhile must not stay valid.

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
