// Ranges and addresses against arithmetic on whole numbers, over random input.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyCidrContains, canonicalPeerAddress, parseCidr } from '../../signer/auth/cidr.ts';

const BITS = { 4: 32, 6: 128 } as const;

/** An address as a number, biased so that ranges of any length are hit now and then. */
const address = fc.oneof(
  fc.record({ family: fc.constant(4 as const), value: fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }) }),
  fc.record({
    family: fc.constant(6 as const),
    value: fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }),
      fc.bigInt({ min: 0n, max: 2n ** 50n }),
      fc.bigInt({ min: 0xffff_0000_0000n, max: 0xffff_ffff_ffffn }),
    ),
  }),
);

type Address = typeof address extends fc.Arbitrary<infer Value> ? Value : never;

function dottedQuad(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.');
}

/** The spellings of one address: compressed at some run of zeros or not, quad at the end or not, any case. */
function spell({ family, value }: Address, style: { compressAt: number; quad: boolean; upper: boolean }): string {
  if (family === 4) return dottedQuad(value);
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - index * 16)) & 0xffffn).toString(16));
  if (style.quad) groups.splice(6, 2, dottedQuad(value & 0xffff_ffffn));
  const zeros = groups.slice(style.compressAt).findIndex((group) => group !== '0');
  const text =
    zeros > 0
      ? `${groups.slice(0, style.compressAt).join(':')}::${groups.slice(style.compressAt + zeros).join(':')}`
      : groups.join(':');
  return style.upper ? text.toUpperCase() : text;
}

const style = fc.record({ compressAt: fc.nat(7), quad: fc.boolean(), upper: fc.boolean() });

/** RFC 4291 §2.5.5.2: an IPv4-mapped IPv6 address is ::ffff:0:0/96; it stands for its IPv4 address. */
function unmapped({ family, value }: Address): Address {
  return family === 6 && value >> 32n === 0xffffn ? { family: 4, value: value & 0xffff_ffffn } : { family, value };
}

it('an address is in a range exactly when they agree in family and in the bits of the prefix', () => {
  let inside = 0;
  fc.assert(
    fc.property(address, address, fc.nat(128), fc.nat(128), style, style, (base, other, length, flip, one, two) => {
      const bits = BITS[base.family];
      const prefixLength = length % (bits + 1);
      const hostBits = BigInt(bits - prefixLength);
      const network = { ...base, value: (base.value >> hostBits) << hostBits };
      if (unmapped(network).family !== base.family && prefixLength >= 96) return;
      const cidr = parseCidr(`${spell(network, one)}/${prefixLength}`);
      if ('refused' in cidr) throw new Error(cidr.refused);
      const near = { ...base, value: base.value ^ (1n << BigInt(flip % bits)) };
      for (const candidate of [base, near, other]) {
        const { family, value } = unmapped(candidate);
        const expected = family === base.family && value >> hostBits === network.value >> hostBits;
        expect(anyCidrContains([cidr], spell(candidate, two))).toBe(expected);
        if (expected) inside += 1;
      }
    }),
    { numRuns: 2000 },
  );
  expect(inside).toBeGreaterThan(1000);
});

it('a range with host bits is refused, with its canonical form in the hint', () => {
  fc.assert(
    fc.property(address, fc.nat(128), style, (base, length, spelling) => {
      const bits = BITS[base.family];
      const prefixLength = length % (bits + 1);
      const hostBits = BigInt(bits - prefixLength);
      fc.pre((base.value >> hostBits) << hostBits !== base.value);
      const answer = parseCidr(`${spell(base, spelling)}/${prefixLength}`);
      if (!('refused' in answer)) throw new Error('accepted');
      const hint = answer.refused.split(' ').at(-1) ?? '';
      const hinted = parseCidr(hint);
      if ('refused' in hinted) throw new Error(hinted.refused);
      expect(hinted.text).toBe(hint);
      expect(anyCidrContains([hinted], spell(unmapped(base), spelling))).toBe(unmapped(base).family === hinted.family);
    }),
    { numRuns: 2000 },
  );
});

it('all spellings of an address have one canonical spelling, which is its own', () => {
  fc.assert(
    fc.property(address, style, style, (value, one, two) => {
      const canonical = canonicalPeerAddress(spell(value, one));
      expect(canonicalPeerAddress(spell(value, two))).toBe(canonical);
      expect(canonicalPeerAddress(spell(unmapped(value), two))).toBe(canonical);
      expect(canonicalPeerAddress(`${canonical}`)).toBe(canonical);
    }),
    { numRuns: 1000 },
  );
});
