// Which Debian package a library of the host is of, by the answers of dpkg-query on the releases of Debian.

import { describe, expect, it } from 'vitest';
import { packageOfAnswer } from '../../tools/release/papers/runtime.ts';

describe('the package of a library', () => {
  it('is the one that dpkg names', () => {
    expect(packageOfAnswer('libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n')).toBe('libc6');
    expect(packageOfAnswer('libstdc++6:amd64: /usr/lib/x86_64-linux-gnu/libstdc++.so.6\n')).toBe('libstdc++6');
  });

  it('is none where dpkg names a diversion alone, as Debian 13 does for the loader', () => {
    const loader = '/lib64/ld-linux-x86-64.so.2';
    const diversion = `diversion by libc6 from: ${loader}\ndiversion by libc6 to: ${loader}.usr-is-merged\n`;
    expect(packageOfAnswer(diversion)).toBeUndefined();
    expect(packageOfAnswer(`${diversion}libc6:amd64: ${loader}\n`)).toBe('libc6');
    expect(packageOfAnswer('')).toBeUndefined();
  });
});
