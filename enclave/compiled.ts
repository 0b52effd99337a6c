// What only an image has: the ceremony, the authorities of hosts, and where the configuration comes from. `eif build`
// replaces this module (specification/enclave.md#ceremony).

import type { NamedAuthorities } from '../signer/tee/authorities.ts';

export interface CompiledImage {
  readonly ceremony: unknown;
  readonly authorities: NamedAuthorities;
  /** `baked`: the file at `CONFIGURATION_PATH`; `fetched`: from the parent at boot. Measured either way. */
  readonly configuration: 'baked' | 'fetched';
}

export const CONFIGURATION_PATH = '/etc/strongroom/config.yaml';

export const COMPILED: CompiledImage | undefined = undefined;
