// What the parts of the contract of slashing backends work with.

import type { SlashingBackend } from '../../signer/slashing/types.ts';

/** One place where a backend keeps its records: a file, a schema, a table. Empty at first. */
export interface SlashingStore {
  open(genesisValidatorsRoot: string): Promise<SlashingBackend>;
  remove(): Promise<void>;
}

/** What the parts of the contract work with; whatever they open by it is closed after each test. */
export interface SlashingHarness {
  readonly complete: boolean;
  readonly manySigners: boolean;
  /** For several tests, which close what they open of it and remove it. */
  createStore(): Promise<SlashingStore>;
  freshStore(): Promise<SlashingStore>;
  open(store: SlashingStore, genesisValidatorsRoot?: string): Promise<SlashingBackend>;
  fresh(genesisValidatorsRoot?: string): Promise<SlashingBackend>;
}
