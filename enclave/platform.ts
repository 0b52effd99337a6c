// What an enclave finds around it: the Nitro Secure Module and its parent, and nothing else. The one place that opens
// them; tests put an emulator and Unix sockets in their stead and start the same program.

import { AWS_NITRO, type DocumentProvider } from '../common/attestation/provider.ts';
import { type Addon, loadAddon } from '../signer/native/load.ts';
import { openNsmDevice } from '../signer/native/nsm-device.ts';
import type { Transport } from '../signer/native/transport.ts';
import { PARENT_CID, vsockTransport } from '../signer/native/vsock.ts';
import type { NsmDevice } from '../signer/tee/nsm.ts';

export interface EnclavePlatform {
  readonly nsmDevice: NsmDevice;
  /** Who signs the NSM's documents: what this enclave finds in its tables has to be signed by the same. */
  readonly documents: DocumentProvider;
  readonly parent: Transport;
  /** The image states that its NSM signs nothing (QEMU): no client and no KMS believes what such an enclave shows. */
  readonly unsignedEvidence?: true;
  readonly hostsPath: string;
  /** Where the alias of a declared port listens. Unless given at that port: PID 1's program may have any. */
  readonly aliasPort?: (port: number) => number;
}

const HOSTS_PATH = '/etc/hosts';
/** CID 0 is the hypervisor's; all ones means any. */
const MAX_CID = 0xffff_fffe;

/** @param env what init takes from the kernel's command line, which is measured with the image */
export function openNitroPlatform(env: Readonly<Record<string, string | undefined>>): EnclavePlatform {
  const addon = requiredAddon();
  return {
    nsmDevice: openNsmDevice(addon).exchange,
    documents: AWS_NITRO,
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

/** 1 loops back, for a parent and an enclave in one guest; 2 is the host of QEMU's machine. */
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
