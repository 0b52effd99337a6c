// What an enclave finds around it: the Nitro Secure Module and its parent. Tests put an emulator and Unix sockets
// there.

import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { AWS_NITRO, type DocumentProvider } from '../common/attestation/contract.ts';
import { backoffMs } from '../common/flow/backoff.ts';
import { type Addon, loadAddon } from '../signer/native/load.ts';
import { describeErrno, type Transport } from '../signer/native/transport.ts';
import { PARENT_CID, vsockTransport } from '../signer/native/vsock.ts';
import type { NsmDevice } from '../signer/tee/nsm.ts';

export interface EnclavePlatform {
  readonly nsmDevice: NsmDevice;
  /** Who signs the NSM's documents: what this enclave finds in its tables has to be signed by the same. */
  readonly documents: DocumentProvider;
  readonly parent: Transport;
  /** The image states that its NSM signs nothing (QEMU): no client and no KMS believes such an enclave. */
  readonly unsignedEvidence?: true;
  readonly hostsPath: string;
  /** Where the alias of a declared port listens. */
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

/** 1 loops back; 2 is the host of QEMU's machine. */
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

// The device file: bytes out, bytes back.

const NSM_PATH = '/dev/nsm';

/** With the system's code. The device's own refusals are answers. */
class NsmDeviceError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'NsmDeviceError';
    this.code = code;
  }
}

interface OpenNsmDevice {
  exchange(request: Uint8Array): Promise<Buffer>;
  /** Exchanges under way end first. */
  close(): void;
}

export function openNsmDevice(addon: Addon, path: string = NSM_PATH): OpenNsmDevice {
  const descriptor = openDevice(path);
  let underWay = 0;
  let closing = false;
  const closeWhenIdle = (): void => {
    if (closing && underWay === 0) closeSync(descriptor);
  };
  return {
    async exchange(request) {
      if (closing) throw new NsmDeviceError('EBADF', `${path} is closed`);
      underWay += 1;
      try {
        return await addon.nsmRequest(descriptor, request);
      } catch (error) {
        throw exchangeError(path, error);
      } finally {
        underWay -= 1;
        closeWhenIdle();
      }
    },
    close() {
      if (closing) return;
      closing = true;
      closeWhenIdle();
    },
  };
}

function openDevice(path: string): number {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDWR);
  } catch (error) {
    const { code = 'EIO' } = error as NodeJS.ErrnoException;
    throw new NsmDeviceError(
      code,
      `cannot open ${path} (${code}): only a Nitro enclave has it, with the kernel module nsm`,
    );
  }
  if (fstatSync(descriptor).isCharacterDevice()) return descriptor;
  closeSync(descriptor);
  throw new NsmDeviceError('ENOTTY', `${path} is no character device, so it is no Nitro Secure Module`);
}

function exchangeError(path: string, error: unknown): unknown {
  const { errno } = error as NodeJS.ErrnoException;
  if (typeof errno !== 'number') return error; // a wrong argument: the caller's bug
  const { code, text } = describeErrno(errno);
  const remedy = code === 'ENOTTY' ? ': this device is no Nitro Secure Module' : '';
  return new NsmDeviceError(code, `the exchange with ${path} failed, ${code} (${text})${remedy}`);
}

/** A pause that doubles, with jitter, so that the enclaves of one parent do not knock at once. */
export interface Patience {
  readonly patienceMs: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

/** @param onFailure told of every attempt that another follows @throws the last error, or the signal's */
export async function keepTrying<T>(
  attempt: () => Promise<T>,
  { patienceMs, firstPauseMs, maxPauseMs }: Patience,
  {
    signal,
    onFailure,
  }: { readonly signal?: AbortSignal; readonly onFailure?: (error: unknown, attempt: number) => void } = {},
): Promise<T> {
  const until = performance.now() + patienceMs;
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      const pauseMs = backoffMs(attempts, { firstMs: firstPauseMs, mostMs: maxPauseMs });
      if (signal?.aborted === true || performance.now() + pauseMs > until) throw error;
      onFailure?.(error, attempts);
      await pause(pauseMs, undefined, signal === undefined ? {} : { signal });
    }
  }
}
