// A signer that loses the right to sign while it deletes a key promises nothing: what it read is of a store over which
// the fleet signs no more, so its file would not be final. The wiring is boot's.

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { unsafeNoopBackend } from '../../../service/noop-store.ts';
import { keyRoutes } from '../../../signer/boot/http-application/key-routes.ts';
import { deleteKeys } from '../../../signer/keys/management/delete.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { keyTurns } from '../../../signer/keys/turns.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import type { ValidatorHistory } from '../../../signer/slashing/types.ts';
import { inFlightSigning } from '../../../signer/tenure.ts';
import { fleetKeys } from '../../support/fleet/keys.ts';
import { CONFIG } from '../../support/fleet/signer-parts.ts';
import { unrestrained } from '../../support/restrained.ts';
import { quietLog } from '../../support/slashing.ts';

describe('a deletion', () => {
  it.each(['endTenures', 'exportHistories'] as const)(
    'answers 503 when the right to sign is lost while the store does %s',
    async (step) => {
      const binding: { hindrance: 'slashing_unbound' | undefined } = { hindrance: undefined };
      const store = unsafeNoopBackend('0x');
      let isRetired = false;
      const backend = {
        ...store,
        async endTenures(publicKeys: readonly string[]) {
          isRetired = true;
          if (step === 'endTenures') binding.hindrance = 'slashing_unbound';
          return store.endTenures(publicKeys);
        },
        async *exportHistories(publicKeys: readonly string[] = []): AsyncGenerator<ValidatorHistory> {
          for (const publicKey of publicKeys) yield { publicKey, blocks: [], attestations: [] };
          if (isRetired && step === 'exportHistories') binding.hindrance = 'slashing_unbound';
        },
      };
      const keys = fleetKeys();
      const [key] = keys.make(1);
      if (key === undefined) throw new Error('no key was made');
      const loaded = new KeyStore({}, { vault: keys.vault, clock: systemClock });
      loaded.add(Uint8Array.from(key.secret), 'memory');
      loaded.completeFirstLoad();
      const loading = {
        keys: loaded,
        pool: keys.pool,
        table: undefined,
        imported: undefined,
        reload: undefined,
        loaded: Promise.resolve(),
        progress: () => undefined,
      };
      const { management } = await keyRoutes(
        CONFIG,
        {
          loading,
          network: publicNetwork('mainnet'),
          inFlight: inFlightSigning(),
          turns: keyTurns(),
          store: unrestrained(backend, () => binding.hindrance),
        },
        { logger: { module: () => quietLog } } as never,
      );
      const answer = deleteKeys({ publicKeys: [key.publicKey], fromTable: false }, management);
      await expect(answer).rejects.toMatchObject({ reason: 'slashing_unbound' });
      await keys.close();
    },
  );
});
