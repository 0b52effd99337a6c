// What of vsock can be told without one: no vsock is opened on this machine. The guest tests have the rest.

import { describe, expect, it } from 'vitest';
import { loadAddon } from '../../signer/native/load.ts';
import { vsockTransport } from '../../signer/native/vsock.ts';
import { addonForTests } from '../support/addon.ts';

const addon = addonForTests() ? loadAddon() : undefined;
const NOT_NUMBERS = [-1, 1.5, Number.NaN, 2 ** 32 - 1, 2 ** 33, '5', undefined, null] as number[];

describe.skipIf(addon === undefined || process.platform !== 'linux')('vsock calls of the addon', () => {
  if (addon === undefined) return;

  it.each(NOT_NUMBERS)('a port or CID of %s is refused before any socket is made', (value) => {
    expect(() => addon.vsockBind(value)).toThrow(TypeError);
    expect(() => addon.vsockConnect(value, 1, () => undefined)).toThrow(TypeError);
    expect(() => addon.vsockConnect(1, value, () => undefined)).toThrow(TypeError);
  });

  it('a connect needs a function to call', () => {
    expect(() => addon.vsockConnect(1, 1, undefined as never)).toThrow(TypeError);
  });

  it('only a connect under way can be cancelled', () => {
    expect(() => addon.vsockCancel({} as never)).toThrow(TypeError);
    expect(() => addon.vsockCancel(addon.openKeyring('off', true, 1) as never)).toThrow(TypeError);
  });

  it('a peer of another family has no CID', () => {
    const descriptor = addon.unixListener();
    expect(addon.vsockPeerCid(descriptor)).toBeLessThan(0);
    expect(addon.replaceDescriptor(addon.unixStream(), descriptor)).toBe(descriptor);
    expect(addon.vsockPeerCid(descriptor)).toBeLessThan(0);
  });

  it('a descriptor that is not open is an error, not an exception', () => {
    expect(addon.vsockPeerCid(1_000_000)).toBeLessThan(0);
    expect(addon.vsockListen(1_000_000, 5)).toBeLessThan(0);
    expect(addon.replaceDescriptor(1_000_000, 1_000_001)).toBeLessThan(0);
  });

  it('an aborted signal and a time limit that is none end a connect before it begins', async () => {
    const transport = vsockTransport(addon);
    const aborted = AbortSignal.abort(new Error('not any more'));
    await expect(transport.connect(1, { signal: aborted })).rejects.toThrow('not any more');
    await expect(transport.connect(1, { timeoutMs: 0 })).rejects.toThrow(RangeError);
    await expect(transport.connect(1, { timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
  });
});
