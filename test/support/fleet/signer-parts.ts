// What a signer of the model is put together from.

import type { Item } from '../../../signer/aws/dynamodb.ts';
import type { BindingTable } from '../../../signer/chamber/binding-table.ts';
import type { StoreBinding } from '../../../signer/chamber/store-binding.ts';
import type { Config } from '../../../signer/config/options.ts';
import type { KeyManagementParts } from '../../../signer/keys/management/management.ts';
import type { KeyStore } from '../../../signer/keys/store.ts';
import type { TableLoader } from '../../../signer/keys/table/loader.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import type { Doubts } from '../../../signer/slashing/doubt/doubts.ts';
import type { renewIncarnations } from '../../../signer/slashing/doubt/renewal.ts';
import { readIncarnations } from '../../../signer/slashing/incarnation.ts';
import type { SlashingProtection } from '../../../signer/slashing/protection.ts';
import type { RestrainedStore } from '../../../signer/slashing/restraints.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import type { inFlightSigning } from '../../../signer/tenure.ts';
import { MAIN_ROOT } from '../slashing.ts';
import type { SignerTrace } from './binding-trace.ts';
import type { Gate, Missing } from './gate.ts';
import { CHAIN, type WorldTime } from './time.ts';

/** What the signers of a fleet share. */
export interface FleetTables {
  readonly binding: BindingTable;
  /** The row SLASHING_STORE, as whoever writes the table sees it. */
  readonly bindingRow: { read(): Promise<Item | undefined>; put(row: Item): Promise<void> };
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
    keys: {
      list: {},
      import: OFF,
      lifecycle: OFF,
      generate: OFF,
      generate_keys: OFF,
      deposit_data: OFF,
      backup: { recipients: [] },
    },
  },
  http: { key_manager_api: OFF },
  server: {},
} as unknown as Config;

export interface Running {
  readonly gate: Gate;
  readonly backend: RestrainedStore;
  readonly slashing: SlashingProtection;
  readonly store: KeyStore;
  readonly parts: KeyManagementParts;
  readonly inFlight: ReturnType<typeof inFlightSigning>;
  readonly binding: StoreBinding | undefined;
  readonly doubts: Doubts;
  readonly renew: ReturnType<typeof renewIncarnations> | undefined;
  readonly traced: SignerTrace | undefined;
  readonly loader: TableLoader | undefined;
}

/**
 * The state table, whose service has the time of the world. Without incarnations every row is of the store that asks.
 */
export function seenFrom(
  table: BindingTable,
  {
    backend,
    time,
    missing,
  }: { readonly backend: SlashingBackend; readonly time: WorldTime; readonly missing?: Missing | undefined },
): BindingTable {
  return {
    ...table,
    async read() {
      const { row } = await table.read();
      const tableTime = Math.floor(time.now() / 1000) * 1000;
      if (row === undefined || missing !== 'incarnation') return { row, tableTime };
      const [incarnation = row.incarnation] = readIncarnations((await backend.identity()).incarnation).held;
      return { row: { ...row, incarnation }, tableTime };
    },
  };
}
