// What a signer of the model is put together from, and the raise that boot makes when a store holds less than the
// signer knows.

import type { BindingTable } from '../../../enclave/chamber/binding-table.ts';
import type { StoreBinding } from '../../../enclave/chamber/store-binding.ts';
import type { Config } from '../../../enclave/config/options.ts';
import type { KeyManagementParts } from '../../../enclave/keys/management/management.ts';
import type { KeyStore } from '../../../enclave/keys/store.ts';
import type { TableLoader } from '../../../enclave/keys/table/loader.ts';
import type { inFlightSigning } from '../../../enclave/signing/in-flight.ts';
import { publicNetwork } from '../../../enclave/signing/networks.ts';
import { type jumpFloor, jumpToPresent } from '../../../enclave/slashing/jump.ts';
import type { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import type { SlashingBackend } from '../../../enclave/slashing/types.ts';
import { MAIN_ROOT } from '../slashing.ts';
import type { Gate } from './gate.ts';
import { CHAIN } from './time.ts';

/** What the signers of a fleet share. */
export interface FleetTables {
  readonly binding: BindingTable;
  openKeys(store: KeyStore): {
    readonly rows: NonNullable<KeyManagementParts['table']>['rows'];
    readonly loader: TableLoader;
  };
}

export const BOUND_MS = 10_000;
export const NETWORK = {
  ...publicNetwork('mainnet'),
  genesisValidatorsRoot: Buffer.from(MAIN_ROOT.slice(2), 'hex'),
  time: CHAIN,
};
/** Only limits of routes are read of the configuration, and there are none here. */
const OFF = { enabled: false };
export const CONFIG = {
  chamber: {
    keys: { list: {}, import: OFF, lifecycle: OFF, generate: OFF, generate_keys: OFF, deposit_data: OFF, backup: {} },
  },
  http: { key_manager_api: OFF },
  server: {},
} as unknown as Config;

export interface Running {
  readonly gate: Gate;
  readonly backend: SlashingBackend;
  readonly slashing: SlashingProtection;
  readonly store: KeyStore;
  readonly parts: KeyManagementParts;
  readonly inFlight: ReturnType<typeof inFlightSigning>;
  readonly binding: StoreBinding | undefined;
  readonly loader: TableLoader | undefined;
}

/** As boot does it: a store that holds less than this signer knows is raised to the present, one raise at a time. */
export function raisedOnce(backend: SlashingBackend, floorOf: ReturnType<typeof jumpFloor>): () => void {
  let isRaising = false;
  return () => {
    if (isRaising) return;
    isRaising = true;
    jumpToPresent(backend, floorOf)
      .catch(() => undefined)
      .finally(() => {
        isRaising = false;
      });
  };
}
