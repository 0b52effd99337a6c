// Who the enclave takes for its parent.

import { describe, expect, it } from 'vitest';
import { parentCid, statesUnsignedEvidence } from '../../enclave/platform.ts';

describe('the CID of the parent', () => {
  it('is 3, unless the kernel’s command line says otherwise', () => {
    expect(parentCid(undefined)).toBe(3);
    expect(parentCid('3')).toBe(3);
    expect(parentCid('1')).toBe(1); // loopback, in a guest that is both
    expect(parentCid('2')).toBe(2); // the host, on QEMU's nitro-enclave machine
    expect(parentCid('4294967294')).toBe(4_294_967_294);
  });

  it.each(['', '0', '4294967295', '4294967299', '-1', '3 ', '0x3', '3.0', 'three'])('is never "%s"', (text) => {
    expect(() => parentCid(text)).toThrow(/STRONGROOM_PARENT_CID is not the CID of a parent/);
  });
});

describe('evidence', () => {
  it('is signed, unless the kernel’s command line says otherwise', () => {
    expect(statesUnsignedEvidence(undefined)).toBe(false);
    expect(statesUnsignedEvidence('unsigned')).toBe(true);
  });

  it.each(['', 'signed', 'UNSIGNED', 'unsigned '])('is never stated by "%s"', (text) => {
    expect(() => statesUnsignedEvidence(text)).toThrow(/STRONGROOM_EVIDENCE/);
  });
});
