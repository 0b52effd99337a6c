// The answer of /healthcheck, from facts that are already known: it asks no backend while a client waits.

import { ERROR_REASONS } from '../../api/errors.ts';
import type { HealthCheck } from '../../api/health.ts';
import type { Latch } from '../../chamber/state-rows.ts';
import type { StoreBinding } from '../../chamber/store-binding.ts';
import type { Readiness } from '../../http/routes/health.ts';
import type { KeyStore } from '../../keys/store.ts';
import type { SlashingProtection } from '../../slashing/protection.ts';
import type { SignerState } from '../world.ts';

export interface ReadinessParts {
  readonly keys: Pick<KeyStore, 'state'>;
  readonly slashing: Pick<SlashingProtection, 'health'>;
  /** Undefined without a state table. */
  readonly binding: Pick<StoreBinding, 'hindrance'> | undefined;
  /** Undefined without a key table. */
  readonly keyTable: { readonly stale: boolean; readonly refusedRows: number } | undefined;
  /** What sealed this replica. */
  readonly latch: () => Latch | undefined;
  readonly custodyRefusal: () => 'sealed' | 'state_stale' | undefined;
}

/**
 * The same ids in every mode (specification/signing.md#probes), so that whoever watches one finds it: without a signer
 * state nothing is lost sight of.
 */
export function readinessOf(state: SignerState, parts: ReadinessParts): Readiness {
  return {
    checks: () => {
      const refusal = parts.custodyRefusal();
      return [
        chamberCheck(state, refusal, parts.latch()),
        slashingCheck(parts.slashing, parts.binding, refusal),
        check('state_watcher', refusal === 'state_stale' ? 'the signer has lost sight of its state table' : undefined),
        check('keys', keysDown(state, parts.keys, parts.keyTable)),
      ];
    },
  };
}

/**
 * Whoever asks why nothing is signed may hold no credential that still counts: the latch is told to everybody
 * (specification/signing.md#probes).
 */
function chamberCheck(
  { shuttingDown }: SignerState,
  refusal: 'sealed' | 'state_stale' | undefined,
  latch: Latch | undefined,
): HealthCheck {
  if (refusal === 'sealed') {
    const { sealedAt: sealed_at = null, reason = null, accessor = null } = latch ?? {};
    const told = { sealed_at, reason, accessor };
    return { id: 'chamber', status: 'DOWN', detail: 'the chamber is sealed', ...told };
  }
  return check('chamber', shuttingDown ? 'the signer is shutting down' : undefined);
}

function slashingCheck(
  { health }: ReadinessParts['slashing'],
  binding: ReadinessParts['binding'],
  refusal: 'sealed' | 'state_stale' | undefined,
): HealthCheck {
  if (health.status === 'unopened') {
    const detail = 'the signer started sealed and has not opened its slashing protection backend';
    return { id: 'anti_slashing', status: 'NOT_OPENED', detail };
  }
  if (health.status !== 'up') return check('anti_slashing', 'the slashing protection backend is down');
  if (binding?.hindrance === undefined) return check('anti_slashing', undefined);
  // It has let go of the store by itself: nobody has to look for another one.
  if (refusal === 'sealed') return check('anti_slashing', 'the signer is sealed and signs over no store');
  return check('anti_slashing', ERROR_REASONS.slashing_unbound.message);
}

function check(id: HealthCheck['id'], down: string | undefined): HealthCheck {
  return down === undefined ? { id, status: 'UP' } : { id, status: 'DOWN', detail: down };
}

function keysDown(
  { keyFailures }: SignerState,
  keys: Pick<KeyStore, 'state'>,
  keyTable: ReadinessParts['keyTable'],
): string | undefined {
  if (keys.state === 'sealed') return 'the signer is sealed and holds no keys';
  if (keys.state === 'loading') return 'keys are still being loaded';
  if (keyFailures > 0) return `${counted(keyFailures, 'key file')} could not be loaded`;
  const refusedRows = keyTable?.refusedRows ?? 0;
  if (refusedRows > 0) return `${counted(refusedRows, 'row')} of the key table could not be loaded`;
  if (keyTable?.stale === true) return 'the signer has lost sight of its key table';
  return undefined;
}

function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
