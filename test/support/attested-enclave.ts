// An enclave that is ready under its parent, and an operator who is connected to it: what tests of restarts start and
// end again and again.

import type { Clock } from '../../common/observe/clock.ts';
import { type AttestedClient, attested, registersOf } from './attested-client.ts';
import type { Parent } from './enclave-parent.ts';
import type { EnclaveWorld } from './enclave-world.ts';

export interface AttestedEnclave {
  readonly parent: Parent;
  readonly client: AttestedClient;
  stop(): Promise<void>;
}

/** @param yaml the parent's configuration; that of the world unless given */
export async function startAttested(
  world: EnclaveWorld,
  clock: Pick<Clock, 'now'>,
  yaml?: string,
): Promise<AttestedEnclave> {
  const parent = await world.startParent(yaml);
  const enclave = await world.startEnclave();
  await parent.readyToSign();
  const client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now);
  return {
    parent,
    client,
    async stop() {
      await client.close();
      await enclave.kill();
      await parent.close();
    },
  };
}
