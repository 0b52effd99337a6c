// Chooses the BLS core of a service: the native one when the addon is built and proves itself, else the portable one.
// An image does not import this file.

import type { BlsCore } from './bls.ts';
import { findNativeBlsCore, type OpenNativeOptions, provedOrClosed } from './open.ts';
import { PortableBlsCore } from './portable.ts';

interface OpenBlsCoreOptions extends OpenNativeOptions {
  /** `portable` leaves the addon alone. Default: native when it is there. */
  readonly prefer?: 'native' | 'portable' | undefined;
}

/** @throws Error when not even the portable core works, or `required` memory is refused */
export async function openBlsCore(options: OpenBlsCoreOptions): Promise<BlsCore> {
  const { log, prefer } = options;
  if (prefer === 'portable') log.info({}, 'the native BLS core is not used: the portable one was asked for');
  const native = prefer === 'portable' ? undefined : await findNativeBlsCore(options);
  if (native !== undefined) return native;
  const core = new PortableBlsCore({ log, cores: options.cores });
  await provedOrClosed(core, options.cores);
  log.info({ core: core.kind }, 'signing with the portable BLS core');
  return core;
}
