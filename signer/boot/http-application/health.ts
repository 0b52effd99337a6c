// The answer of /healthcheck, from facts that are already known: it asks no backend while a client waits.

import type { Logger } from '../../../common/observe/logger.ts';
import { ERROR_REASONS } from '../../api/errors.ts';
import type { HealthCheck, KeysLoading } from '../../api/health.ts';
import type { Config } from '../../config/options.ts';
import type { Readiness } from '../../http/routes/health.ts';
import { custodyRefusal } from '../../sign/right.ts';
import { clockTrouble } from '../slashing-protection.ts';
import type { Parts } from './parts.ts';

export function readinessOf(
  parts: Parts,
  { web3signer_names: hasWeb3SignerNames }: Pick<Config['server'], 'web3signer_names'>,
  log: Pick<Logger, 'isLosing'>,
): Readiness {
  return {
    checks: () => {
      const refusal = custodyRefusal(parts.right);
      const own = [
        chamberCheck(parts, refusal),
        slashingCheck(parts, refusal),
        check('clock', clockTrouble(parts.trouble)),
        watcherCheck(parts, refusal),
        keysCheck(parts),
        ...(parts.receipts === undefined ? [] : [parts.receipts.check()]),
        logCheck(parts, log),
      ];
      return hasWeb3SignerNames ? [...own, ...web3SignerChecks(own)] : own;
    },
  };
}

type CustodyRefusal = ReturnType<typeof custodyRefusal>;

/** Its checks of the same things (its HealthCheckNames.java), for a tool that looks for them by name. */
function web3SignerChecks(own: readonly HealthCheck[]): HealthCheck[] {
  const names = { keys: 'keys-check', anti_slashing: 'slashing-protection-db-health-check' } as const;
  return own.flatMap(({ id, status }) => (id === 'keys' || id === 'anti_slashing' ? [{ id: names[id], status }] : []));
}

/** Everybody may know that and when. By whom and why stand in the log and in the latch's row. */
function chamberCheck({ custody, state }: Parts, refusal: CustodyRefusal): HealthCheck {
  if (refusal === 'sealed') {
    const sealed_at = custody?.chamber.latch?.sealedAt ?? null;
    return { id: 'chamber', status: 'DOWN', detail: 'the chamber is sealed', sealed_at };
  }
  return check('chamber', state.shuttingDown ? 'the signer is shutting down' : undefined);
}

function slashingCheck({ slashing: { health, ahead }, binding, trouble }: Parts, refusal: CustodyRefusal): HealthCheck {
  if (health.status === 'unopened') {
    const detail = 'the signer started sealed and has not opened its slashing protection backend';
    return { id: 'anti_slashing', status: 'NOT_OPENED', detail };
  }
  if (health.status !== 'up') return check('anti_slashing', 'the slashing protection backend is down');
  const { causes = [] } = trouble?.doubts.unsettled ?? {};
  if (causes.length > 0)
    return check('anti_slashing', `records may be lost, and the store is not raised yet: ${causes.join(', ')}`);
  if (binding?.hindrance === undefined) {
    if (ahead.keys.size === 0) return check('anti_slashing', undefined);
    // Without their names: no credential is asked for. Other keys sign on.
    const detail = `${counted(ahead.keys.size, 'key')} with records ahead of the clock: no blocks, or no votes, are signed there until then`;
    return { id: 'anti_slashing', status: 'DEGRADED', detail };
  }
  // A sealed signer has let go of the store itself: no operator has to look for another signer that uses it.
  if (refusal === 'sealed') return check('anti_slashing', 'the signer is sealed and signs over no store');
  return check('anti_slashing', ERROR_REASONS.slashing_unbound.message);
}

/** Every replica decides so: to take this one out would help no caller. */
function watcherCheck({ stateful }: Parts, refusal: CustodyRefusal): HealthCheck {
  const missing = stateful?.missingRows ?? 0;
  if (refusal === 'state_stale') return check('state_watcher', 'the signer has lost sight of its state table');
  if (missing === 0 || refusal !== undefined) return check('state_watcher', undefined);
  const detail = `${counted(missing, 'row')} of policies and tokens are not as they were written and count as missing`;
  return { id: 'state_watcher', status: 'DEGRADED', detail };
}

function logCheck({ right: { audit } }: Parts, log: Pick<Logger, 'isLosing'>): HealthCheck {
  if (audit?.hindrance() !== undefined) return check('log', ERROR_REASONS.audit_unavailable.message);
  if (!log.isLosing()) return check('log', undefined);
  return { id: 'log', status: 'DEGRADED', detail: 'lines of the log are lost: its destination does not take them' };
}

function check(id: HealthCheck['id'], down: string | undefined): HealthCheck {
  return down === undefined ? { id, status: 'UP' } : { id, status: 'DOWN', detail: down };
}

function keysCheck(parts: Parts): HealthCheck {
  const loading = parts.loading.progress();
  if (loading === undefined) return check('keys', keysDown(parts));
  return { id: 'keys', status: 'DOWN', detail: `keys are still being loaded: ${loadingText(loading)}`, loading };
}

function loadingText({ done, total, remaining_seconds: seconds }: KeysLoading): string {
  if (total === null) return `${done} so far`;
  const left =
    seconds === null ? '' : `, about ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} left`;
  return `${done} of ${total}${left}`;
}

function keysDown({ state: { keyFailures }, loading: { keys, table } }: Parts): string | undefined {
  if (keys.state === 'sealed') return 'the signer is sealed and holds no keys';
  if (keyFailures > 0) return `${counted(keyFailures, 'key file')} could not be loaded`;
  const refusedRows = table?.loader.refusedRows ?? 0;
  if (refusedRows > 0) return `${counted(refusedRows, 'row')} of the key table could not be loaded`;
  if (table?.loader.stale === true) return 'the signer has lost sight of its key table';
  return undefined;
}

function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
