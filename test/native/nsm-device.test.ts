// The device file of the NSM where there is none: what goes wrong is said clearly. The guest tests have a device that
// answers.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openNsmDevice } from '../../enclave/platform.ts';
import { loadAddon } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';

const addon = addonForTests() ? loadAddon() : undefined;
const folder = mkdtempSync(join(tmpdir(), 'strongroom-nsm-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(addon === undefined || process.platform !== 'linux')('the NSM device', () => {
  if (addon === undefined) return;

  it('no such file: an enclave has it', () => {
    expect(() => openNsmDevice(addon, join(folder, 'absent'))).toThrow(
      /absent \(ENOENT\): only a Nitro enclave has it/,
    );
  });

  it('a file that is no device is refused', () => {
    const path = join(folder, 'file');
    writeFileSync(path, '');
    expect(() => openNsmDevice(addon, path)).toThrow(/is no character device/);
  });

  it('another device does not know the ioctl', async () => {
    const device = openNsmDevice(addon, '/dev/null');
    await expect(device.exchange(Buffer.from([0x60]))).rejects.toMatchObject({
      name: 'NsmDeviceError',
      code: 'ENOTTY',
      message: expect.stringMatching(/\/dev\/null failed, ENOTTY .*no Nitro Secure Module/),
    });
    device.close();
  });

  it('a device that is closed exchanges nothing, and what was under way has ended first', async () => {
    const device = openNsmDevice(addon, '/dev/null');
    const underWay = device.exchange(Buffer.from([0x60]));
    device.close();
    await expect(device.exchange(Buffer.from([0x60]))).rejects.toMatchObject({ code: 'EBADF' });
    await expect(underWay).rejects.toMatchObject({ code: 'ENOTTY' });
  });

  it('a request is 1 to 4096 bytes', () => {
    expect(() => addon.nsmRequest(0, new Uint8Array(0))).toThrow(TypeError);
    expect(() => addon.nsmRequest(0, new Uint8Array(4097))).toThrow(TypeError);
    expect(() => addon.nsmRequest(-1, new Uint8Array(1))).toThrow(TypeError);
  });
});
