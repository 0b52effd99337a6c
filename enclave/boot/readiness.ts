// What /healthcheck says, from facts at hand: no backend is asked while a client waits.

import type { SignerState } from '../boot.ts';
import type { HealthCheck, Readiness } from '../http/routes/health.ts';
import type { KeyStore } from '../keys/store.ts';
import type { SlashingProtection } from '../slashing/protection.ts';

export function readinessOf(
  state: SignerState,
  { keys, slashing }: { readonly keys: Pick<KeyStore, 'state'>; readonly slashing: Pick<SlashingProtection, 'health'> },
): Readiness {
  return {
    checks: () => [
      check('chamber', state.shuttingDown ? 'the signer is shutting down' : undefined),
      check('anti_slashing', slashing.health.status === 'up' ? undefined : 'the slashing protection backend is down'),
      check('state_watcher', undefined), // stateless mode: there is no state to lose sight of
      check('keys', keysDown(state, keys)),
    ],
  };
}

function check(id: HealthCheck['id'], down: string | undefined): HealthCheck {
  return down === undefined ? { id, status: 'UP' } : { id, status: 'DOWN', detail: down };
}

function keysDown({ keyFailures }: SignerState, keys: Pick<KeyStore, 'state'>): string | undefined {
  if (keys.state === 'loading') return 'keys are still being loaded';
  if (keyFailures > 0) return `${keyFailures} key files could not be loaded`;
  return undefined;
}
