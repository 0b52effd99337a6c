// One text for one value (RFC 8785): its own examples, and what has no such text.

import { expect, it } from 'vitest';
import { canonicalJson } from '../../ceremony/transcript/chain.ts';

it('sorts members by code units and writes strings as RFC 8785 §3.2.3 and §3.2.2.2 have them', () => {
  const members = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 };
  expect(canonicalJson(members)).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
  expect(canonicalJson('\u20ac$\u000f\nA\'B"\\\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
  expect(canonicalJson({ b: [true, null, -1, {}], a: '' })).toBe('{"a":"","b":[true,null,-1,{}]}');
});

it.each([[0.5], [2 ** 53], [Number.NaN], ['\ud800'], [{ '\udc00': 1 }]])('refuses %j', (value) => {
  expect(() => canonicalJson(value)).toThrow('no canonical text');
});
