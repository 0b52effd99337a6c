// Remembered domains are computed domains, whatever came before: a stale one would be a signature for another fork.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ROWS } from '../../signer/operations/rows.ts';
import { computeDomain, rememberedDomains } from '../../signer/sign/message-root.ts';

const type = fc.constantFrom(...Object.values(ROWS).map(({ domain }) => domain));
/** Few values, so that repeats, near misses and alternations all come up. */
const version = fc.constantFrom(0, 1, 2).map((byte) => Uint8Array.of(byte, 0, 0, 0));
const root = fc.constantFrom(0, 1).map((byte) => new Uint8Array(32).fill(byte));

describe('remembered domains', () => {
  it('are what computeDomain answers, in any order of calls', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(type, version, root), { maxLength: 40 }), (calls) => {
        const domains = rememberedDomains();
        for (const call of calls) expect(domains(...call)).toEqual(computeDomain(...call));
      }),
    );
  });

  it('do not follow a change of the bytes they were asked with', () => {
    const domains = rememberedDomains();
    const forkVersion = Uint8Array.of(1, 0, 0, 0);
    const chain = new Uint8Array(32).fill(7);
    const first = Uint8Array.from(domains(ROWS.RANDAO_REVEAL.domain, forkVersion, chain));
    forkVersion[0] = 2;
    const second = domains(ROWS.RANDAO_REVEAL.domain, forkVersion, chain);
    expect(second).toEqual(computeDomain(ROWS.RANDAO_REVEAL.domain, forkVersion, chain));
    expect(second).not.toEqual(first);
  });
});
