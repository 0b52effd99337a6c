// What /healthcheck says, from facts at hand: no backend is asked while a client waits.

import { ERROR_REASONS } from '../api/errors.ts';
import type { SignerState } from '../boot.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { HealthCheck, Readiness } from '../http/routes/health.ts';
import type { KeyStore } from '../keys/store.ts';
import type { SlashingProtection } from '../slashing/protection.ts';

export interface ReadinessParts {
  readonly keys: Pick<KeyStore, 'state'>;
  readonly slashing: Pick<SlashingProtection, 'health'>;
  /** Undefined without a state table. */
  readonly binding: Pick<StoreBinding, 'hindrance'> | undefined;
  /** Undefined without a key table. */
  readonly keyTable: { readonly stale: boolean } | undefined;
  readonly custodyRefusal: () => 'sealed' | 'state_stale' | undefined;
}

/** The same ids in every mode (decisions.md section 3), so that whoever watches one finds it: without a signer state nothing is lost sight of. */
export function readinessOf(
  state: SignerState,
  { keys, slashing, binding, keyTable, custodyRefusal }: ReadinessParts,
): Readiness {
  return {
    checks: () => {
      const refusal = custodyRefusal();
      return [
        check('chamber', chamberDown(state, refusal)),
        check('anti_slashing', slashingDown(slashing, binding)),
        check('state_watcher', refusal === 'state_stale' ? 'the signer has lost sight of its state table' : undefined),
        check('keys', keysDown(state, keys, keyTable)),
      ];
    },
  };
}

function slashingDown({ health }: ReadinessParts['slashing'], binding: ReadinessParts['binding']): string | undefined {
  if (health.status !== 'up') return 'the slashing protection backend is down';
  return binding?.hindrance === undefined ? undefined : ERROR_REASONS.slashing_unbound.message;
}

function chamberDown({ shuttingDown }: SignerState, refusal: 'sealed' | 'state_stale' | undefined): string | undefined {
  if (shuttingDown) return 'the signer is shutting down';
  return refusal === 'sealed' ? 'the chamber is sealed' : undefined;
}

function check(id: HealthCheck['id'], down: string | undefined): HealthCheck {
  return down === undefined ? { id, status: 'UP' } : { id, status: 'DOWN', detail: down };
}

function keysDown(
  { keyFailures }: SignerState,
  keys: Pick<KeyStore, 'state'>,
  keyTable: ReadinessParts['keyTable'],
): string | undefined {
  if (keys.state === 'loading') return 'keys are still being loaded';
  if (keyFailures > 0) return `${keyFailures} key files could not be loaded`;
  if (keyTable?.stale === true) return 'the signer has lost sight of its key table';
  return undefined;
}
