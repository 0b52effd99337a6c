// The parser of signing requests on anything at all: whatever comes is parsed or refused, with its place and never its
// value; what Web3Signer refuses is decided here too.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { SIGN_REQUEST_SCHEMAS } from '../../signer/operations/sign-request.ts';
import { aggregating, attesting, header, parse, parseText, proposing } from '../api/sign-bodies.ts';
import { signRequestBody } from '../sign/sign-request-arbitraries.ts';
import { vectorJson } from '../support/vectors.ts';

describe('any request at all', () => {
  const reasons = ['malformed_body', 'unsupported_operation', 'unsupported_fork'];
  const isAnswered = (parsed: ReturnType<typeof parseSignRequest>): boolean =>
    parsed.kind === 'request' || (reasons.includes(parsed.reason) && parsed.hint.length > 0);

  it('is parsed or refused, never thrown on', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseSignRequest(bytes)).toSatisfy(isAnswered);
      }),
    );
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseText(text)).toSatisfy(isAnswered);
      }),
    );
  });

  it('with one value replaced by anything is parsed or refused, never thrown on', () => {
    const spoiled = fc.tuple(signRequestBody, fc.jsonValue(), fc.nat()).map(([body, junk, which]) => {
      const text = JSON.stringify(body);
      const values = [...text.matchAll(/:("[^"]*"|[[{])/g)];
      const start = (values[which % values.length]?.index ?? 0) + 1;
      return text.slice(0, start) + JSON.stringify(junk) + text.slice(endOfValue(text, start));
    });
    fc.assert(
      fc.property(spoiled, (text) => {
        JSON.parse(text);
        expect(parseText(text)).toSatisfy(isAnswered);
      }),
      { numRuns: 500 },
    );
  });

  it('that is refused is told the place, never the value', () => {
    const secret = 'correct-horse-battery-staple';
    const bodies = [
      { ...attesting({}), type: secret },
      attesting({ slot: secret }),
      attesting({ source: secret }),
      aggregating({ version: secret, data: {} }),
      proposing({ version: secret, block_header: header }),
      { ...attesting({}), signingRoot: secret },
    ];
    for (const body of bodies) expect(JSON.stringify(parse(body))).not.toContain(secret);
  });
});

/** Where the value that starts at `start` ends, in a text whose strings have no escapes. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; ; at++) {
    if (text[at] === '"') at = text.indexOf('"', at + 1);
    else if (text[at] === '{' || text[at] === '[') depth += 1;
    else if (text[at] === '}' || text[at] === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
}

const negative = vectorJson<{ cases: { case: string; body: object | string; web3signer_status: number }[] }>(
  'signing/negative-requests.json',
)?.cases;

/**
 * specification/signing.md#answers: 400 whatever Web3Signer answers; what is decided later than the parser is a request
 * here.
 */
const NEGATIVE_OUTCOMES: Readonly<Record<string, string>> = {
  'unknown identifier (64..96 hex or any string)': 'request',
  'signingRoot present and wrong': 'request',
  'signing_root (snake case alias) present and wrong': 'request',
  'signingRoot absent': 'request',
  'fork_info missing on a type that needs it': 'malformed_body',
  'inner object missing': 'malformed_body',
  'unknown type': 'unsupported_operation',
  'type missing': 'malformed_body',
  'type in lower case': 'request',
  'unknown extra top-level and nested fields': 'request',
  'numbers as JSON integers instead of strings': 'request',
  'hex without 0x': 'request',
  'negative or non-numeric slot': 'malformed_body',
  'body is not JSON': 'malformed_body',
  'same validator, same target, different root (double vote), slashing DB on': 'request',
  'exact repeat of an already signed attestation': 'request',
  'different genesis_validators_root than the DB': 'request',
  'BLOCK_V2 whose beacon_block has neither block nor block_header': 'malformed_body',
};

describe.skipIf(negative === undefined)('the negative cases of Web3Signer', () => {
  it('are all decided here', () => {
    expect(negative?.map((entry) => entry.case)).toEqual(Object.keys(NEGATIVE_OUTCOMES));
  });

  it.each(negative ?? [])('$case', ({ case: name, body }) => {
    const parsed = parseText(typeof body === 'string' ? body : JSON.stringify(body));
    expect(parsed.kind === 'request' ? 'request' : parsed.reason).toBe(NEGATIVE_OUTCOMES[name]);
  });
});

describe('the schemas', () => {
  it.each([...SIGN_REQUEST_SCHEMAS])('of %s describes its input for the OpenAPI document', (_type, schema) => {
    const described = z.toJSONSchema(schema, { io: 'input' });
    expect(described).toMatchObject({ type: 'object', properties: { type: { type: 'string' } } });
    expect(described.required).toContain('type');
    // No member is left without a description of what it takes.
    expect(JSON.stringify(described)).not.toContain(':{}');
  });
});
