// JSON that is signed: what JSON.parse reads, or a refusal; never a second reading.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  MAX_JSON_DEPTH,
  MAX_JSON_MEMBERS,
  MAX_JSON_VALUES,
  MAX_JSON_VALUES_BESIDE_INEXACT,
  parseStrictJson,
} from '../../common/formats/strict-json.ts';

const parse = (text: string) => parseStrictJson(Buffer.from(text));
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const refused = (hint: string) => ({ kind: 'refused', hint });

describe('strict JSON', () => {
  it('is what JSON.parse reads, for any value with integers', () => {
    const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: 'binary', maxLength: 8 }),
        fc.maxSafeNat(),
        fc.constantFrom(true, false, null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.string({ unit: 'binary', maxLength: 4 }), tie('value'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(anyValue, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = Buffer.from(JSON.stringify(value, null, space)).toString();
        expect(parse(text)).toEqual({ kind: 'json', value: JSON.parse(text) });
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    '{"a":1,"a":1}',
    '{"a":1,"b":{"x":[]},"a":2}',
    '[{"b":{"a":{},"a":[]}}]',
    String.raw`{"a":1,"\u0061":2}`,
    '{"a":1,"b":[{"a":1}],"a":2}',
    '{"a" : 1, "a"\n: 2}',
    String.raw`{"b":"\\","a":1,"a":2}`,
  ])('refuses a member given twice: %s', (text) => {
    expect(parse(text)).toEqual(refused('the member "a" is given twice'));
  });

  it.each([
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a","b":"a"}',
    '{"a":["a","a"]}',
    String.raw`{"a":"\"a\":1,\"a\":2"}`,
    String.raw`{"a\\":1,"a":2}`,
    '{"a":"b: {","b":"}"}',
  ])('knows the same name elsewhere from a member given twice: %s', (text) => {
    expect(parse(text)).toEqual({ kind: 'json', value: JSON.parse(text) });
  });

  it('refuses it in objects of any size, wherever it is', () => {
    for (let size = 1; size <= 40; size++) {
      const names = Array.from({ length: size }, (_, index) => `name ${index}`);
      const textOf = (all: readonly string[]): string => `{${all.map((name) => `"${name}":1`).join(',')}}`;
      expect(parse(textOf(names)).kind).toBe('json');
      for (const name of names) {
        expect(parse(textOf([...names, name]))).toEqual(refused(`the member "${name}" is given twice`));
      }
    }
  });

  it('names the doubled member, a long one in part', () => {
    const name = 'n'.repeat(1000);
    expect(parse(`{"${name}":1,"${name}":2}`)).toEqual(refused(`the member "${'n'.repeat(40)}…" is given twice`));
  });

  it.each(['1.0', '1e3', '1E3', '-1', '-0', '0.1', '1e-3', '9007199254740991.4'])(
    'reads %s as NaN: it is no plain integer',
    (number) => {
      expect(parse(`{"a":${number},"b":[true,false,null,${number}],"c":3,"d":"1e3 -1.5"}`)).toEqual({
        kind: 'json',
        value: { a: Number.NaN, b: [true, false, null, Number.NaN], c: 3, d: '1e3 -1.5' },
      });
    },
  );

  it(`refuses more than ${MAX_JSON_DEPTH} levels, however many there are`, () => {
    expect(parse(nested(MAX_JSON_DEPTH)).kind).toBe('json');
    expect(parse(nested(MAX_JSON_DEPTH + 1))).toEqual(refused('the body is nested deeper than 32 levels'));
    expect(parse('{"a":'.repeat(200_000))).toEqual(refused('the body is nested deeper than 32 levels'));
  });

  it(`refuses more than ${MAX_JSON_VALUES} values, of whatever kind`, () => {
    const tooMany = refused(`the body has more than ${MAX_JSON_VALUES} values`);
    expect(parse(`[${'1,'.repeat(MAX_JSON_VALUES - 3)}1]`).kind).toBe('json');
    for (const value of ['1', '1.5', '{}', '[]', '""', 'null']) {
      expect(parse(`[${`${value},`.repeat(MAX_JSON_VALUES)}${value}]`)).toEqual(tooMany);
    }
  });

  it(`refuses more than ${MAX_JSON_MEMBERS} members in one object`, () => {
    const tooMany = refused(`an object has more than ${MAX_JSON_MEMBERS} members`);
    const members = Array.from({ length: MAX_JSON_MEMBERS + 1 }, (_, index) => `"${index}":1`);
    expect(parse(`{${members.slice(1).join()}}`).kind).toBe('json');
    expect(parse(`{${members.join()}}`)).toEqual(tooMany);
    expect(parse(`[${members.map((member) => `{${member}}`).join()}]`).kind).toBe('json');
  });

  it(`refuses more than ${MAX_JSON_VALUES_BESIDE_INEXACT} values with a number among them that is no plain integer`, () => {
    const ones = '1,'.repeat(MAX_JSON_VALUES_BESIDE_INEXACT - 2);
    expect(parse(`[${ones}-1]`).kind).toBe('json');
    expect(parse(`[${ones}1,1]`).kind).toBe('json');
    for (const number of ['-1', '1.5', '1e1']) {
      expect(parse(`[${ones}1,${number}]`)).toEqual(
        refused('the body has more than 5000 values and a number that is no plain integer'),
      );
    }
  });

  it('refuses a long member name with escapes', () => {
    const name = String.raw`\u0061`;
    expect(parse(`{"${name.repeat(21)}":1}`)).toEqual({ kind: 'json', value: { ['a'.repeat(21)]: 1 } });
    expect(parse(`{"${name.repeat(22)}":1}`).kind).toBe('refused');
  });

  it.each([
    '',
    ' ',
    'not json',
    '{',
    '{"a"',
    '{"a":1',
    '"',
    String.raw`"\"`,
    '{"a":1,}',
    "{'a':1}",
    '01',
    'NaN',
    '{"a":1}{',
    '1.',
    String.raw`{"\x":1}`,
    '[1}',
    '{"a":1]',
    '{"a"}',
    '{"a",1}',
    '{1:1}',
    '[1:1]',
    '[,1]',
    '[1 1]',
    '[1"a"]',
    '["a"{}]',
    '{"a":1 "b":2}',
    '{"a":1,,"b":2}',
    '1,1',
    '[]]',
    '[tru]',
    '[truee]',
    '[+1]',
    '[--1]',
    '[1e]',
    '[.5]',
    '[\u00a01]',
    '[1]\u00a0',
  ])('refuses what is not JSON: %s', (text) => {
    expect(parse(text)).toEqual(refused('the body is not JSON in UTF-8'));
  });

  it('refuses bytes that are not UTF-8, which another parser may have replaced', () => {
    expect(parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22))).toEqual(refused('the body is not JSON in UTF-8'));
    expect(parseStrictJson(Uint8Array.of(0x22, 0xc0, 0xaf, 0x22)).kind).toBe('refused');
  });

  it('accepts exactly what JSON.parse accepts, within its limits', () => {
    const piece = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        '"a"',
        '"b"',
        '""',
        ':',
        ',',
        '1',
        '0',
        '-1',
        '1.5e+2',
        '.',
        'true',
        'false',
        'null',
        ' ',
        '\n',
      ],
    );
    const isJson = (text: string): boolean => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const parsed = parse(pieces.join(''));
        const isTwice = parsed.kind === 'refused' && parsed.hint.endsWith('is given twice');
        expect(parsed.kind === 'json' || isTwice).toBe(isTwice || isJson(pieces.join('')));
      }),
      { numRuns: 5000 },
    );
  });

  it('keeps a member named __proto__ a member', () => {
    const parsed = parse('{"__proto__":{"polluted":1}}');
    expect(parsed.kind === 'json' && Object.keys(parsed.value as object)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('refuses, and does not throw, on any text that looks a little like JSON', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', '\\u00', '1', '-', 'e', 'true', ' ', 'a');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        const parsed = parse(text);
        if (parsed.kind === 'json') JSON.parse(text);
        expect(['json', 'refused']).toContain(parsed.kind);
      }),
      { numRuns: 1000 },
    );
  });
});
