// The Nitro Secure Module behind its device file: bytes out, bytes back (specification/enclave.md#nsm). CBOR, order and
// time limits are the client's (enclave/nsm/client.ts). Trusts the kernel's driver; refuses a path that is no character
// device.

import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { Addon } from './load.ts';
import { describeErrno } from './system-error.ts';

const NSM_PATH = '/dev/nsm';

/** What went wrong on the way to the device, with the system's code. The device's own refusals are answers. */
class NsmDeviceError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'NsmDeviceError';
    this.code = code;
  }
}

export interface OpenNsmDevice {
  /** @throws NsmDeviceError */
  exchange(request: Uint8Array): Promise<Buffer>;
  /** Exchanges under way end first; later ones are refused. */
  close(): void;
}

/** @throws NsmDeviceError when there is no such device, or it cannot be opened */
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
