// What only an enclave image has: the ceremony and where the configuration comes from. `strongroom eif build` replaces
// this module when it bundles `enclave/main.ts`; outside an image there is nothing compiled in
// (specification/enclave.md#ceremony).

export interface CompiledImage {
  /** The canonical ceremony, as `parseCeremony` reads it. */
  readonly ceremony: unknown;
  /** `baked`: the file at `CONFIGURATION_PATH`; `fetched`: from the parent at boot. Measured either way. */
  readonly configuration: 'baked' | 'fetched';
}

/** Where a baked configuration lies inside the image. */
export const CONFIGURATION_PATH = '/etc/strongroom/config.yaml';

export const COMPILED: CompiledImage | undefined = undefined;
