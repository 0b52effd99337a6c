// What an enclave finds around it: the Nitro Secure Module and its parent, and nothing else. The one place that opens
// them; tests put an emulator and Unix sockets in their stead and start the same program.

import { type Addon, loadAddon } from '../native/load.ts';
import { openNsmDevice } from '../native/nsm-device.ts';
import type { Transport } from '../native/transport.ts';
import { PARENT_CID, vsockTransport } from '../native/vsock.ts';
import type { NsmDevice } from './nsm/nsm.ts';

export interface EnclavePlatform {
  readonly nsmDevice: NsmDevice;
  readonly parent: Transport;
  /**
   * The image states that its NSM signs nothing (QEMU's machine): no client and no KMS believes what such an enclave
   * shows.
   */
  readonly unsignedEvidence?: true;
  /** Written from `tee.nitro.egress`; what resolves a name reads it. */
  readonly hostsPath: string;
  /** Where the alias of a declared port listens. Unless given at that port: PID 1's program may have any. */
  readonly aliasPort?: (port: number) => number;
}

const HOSTS_PATH = '/etc/hosts';
/** CID 0 is the hypervisor's; all ones means any. */
const MAX_CID = 0xffff_fffe;

/**
 * @param env `STRONGROOM_PARENT_CID` and `STRONGROOM_EVIDENCE`, which init takes from the kernel's command line:
 * measured with the image
 */
export function openNitroPlatform(env: Readonly<Record<string, string | undefined>>): EnclavePlatform {
  const addon = requiredAddon();
  return {
    nsmDevice: openNsmDevice(addon).exchange,
    parent: vsockTransport(addon, { peerCid: parentCid(env['STRONGROOM_PARENT_CID']) }),
    hostsPath: HOSTS_PATH,
    ...(statesUnsignedEvidence(env['STRONGROOM_EVIDENCE']) ? { unsignedEvidence: true } : {}),
  };
}

function requiredAddon(): Addon {
  const addon = loadAddon();
  if (addon === undefined)
    throw new Error('the image has no native addon: build it with `make native` and then the image');
  return addon;
}

/**
 * 1 loops back, for a parent and an enclave in one guest (specification/enclave.md#tests); 2 is the host of QEMU's
 * machine.
 */
export function parentCid(text: string | undefined): number {
  if (text === undefined) return PARENT_CID;
  const cid = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (cid >= 1 && cid <= MAX_CID) return cid;
  throw new Error(`STRONGROOM_PARENT_CID is not the CID of a parent: 1 to ${MAX_CID}`);
}

export function statesUnsignedEvidence(text: string | undefined): boolean {
  if (text === undefined || text === 'unsigned') return text !== undefined;
  throw new Error('STRONGROOM_EVIDENCE: the one word that it takes is unsigned');
}
