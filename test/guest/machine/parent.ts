// The parent's side of the machine, in this process: nitro-cli's heartbeat, the real parent proxy, and AWS as stand-ins
// behind TLS. KMS takes documents that nobody has signed, which is all that this machine's security module makes, and
// looks at their registers all the same.

import { readFileSync } from 'node:fs';
import { type Parent, startParent } from '../../support/enclave-parent.ts';
import type { Appliance } from '../appliance/image.ts';
import { type StandIns, startStandIns } from '../appliance/programs/stand-ins.ts';
import { DYNAMODB_HOST, HEARTBEAT_PORT, KMS_HOST } from '../appliance/settings.ts';
import { hybridTransport } from './hybrid-transport.ts';
import { CONFIGURATION } from './settings.ts';

const HEARTBEAT = 0xb7;

export interface ParentSide extends Parent {
  readonly standIns: StandIns;
  heartbeats(): number;
}

export function startStandInsOf({ registers, tls }: Pick<Appliance, 'registers' | 'tls'>): Promise<StandIns> {
  return startStandIns({
    documents: { unsafeUnsignedDocuments: true },
    registers: conditionsOf(registers),
    tls: { cert: readFileSync(tls.certificate), key: readFileSync(tls.key) },
    addressOf: () => ({ host: '127.0.0.1', port: 0 }),
  });
}

/** What KMS asks of a document before it gives a custody key to this image. */
export function conditionsOf({
  0: pcr0 = '',
  16: pcr16 = '',
  17: pcr17 = '',
}: Appliance['registers']): Readonly<Record<string, readonly string[]>> {
  return { PCR0: [pcr0], PCR16: [pcr16], PCR17: [pcr17] };
}

/** @param further ports of this machine, by vsock port */
export async function startParentSide(
  standIns: StandIns,
  unixPath: string,
  { configuration = CONFIGURATION, further = {} }: { configuration?: string; further?: Record<number, number> } = {},
): Promise<ParentSide> {
  const transport = hybridTransport(unixPath);
  let heartbeats = 0;
  const heart = await transport.listen(HEARTBEAT_PORT, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (byte) => {
      if (byte.length === 1 && byte[0] === HEARTBEAT) heartbeats += 1;
      socket.end(byte);
    });
  });
  const ports = { 8001: standIns.ports.get(DYNAMODB_HOST) ?? 0, 8002: standIns.ports.get(KMS_HOST) ?? 0, ...further };
  const parent = await startParent(configuration, transport, ports);
  return {
    ...parent,
    standIns,
    heartbeats: () => heartbeats,
    async close() {
      await heart.close();
      await parent.close();
    },
  };
}
