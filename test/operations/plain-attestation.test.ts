// The short way to read a vote and its schema never say two things about one body.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SIGN_REQUEST_SCHEMAS } from '../../signer/operations/sign-request.ts';
import { readPlainAttestation } from '../../signer/operations/vote.ts';
import { type Body, respelled, signRequestBody } from '../sign/sign-request-arbitraries.ts';
import { attestation, rootOf } from '../support/requests.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const schema = SIGN_REQUEST_SCHEMAS.get('ATTESTATION');
const votes = signRequestBody.filter((body) => body['type'] === 'ATTESTATION');

/** What the short way reads is what the schema reads. */
function expectNoDifference(value: object): void {
  const read = readPlainAttestation(value);
  if (read !== undefined) expect(read).toEqual(schema?.parse(value));
}

function placesOf(value: Json): string[][] {
  if (typeof value !== 'object' || value === null) return [[]];
  return [[], ...Object.entries(value).flatMap(([name, inner]) => placesOf(inner).map((place) => [name, ...place]))];
}

function replaced(value: Json, [name, ...rest]: readonly string[], by: Json | undefined): Json {
  if (name === undefined) return by ?? null;
  const members = { ...(value as Body) } as { [name: string]: Json };
  if (rest.length === 0 && by === undefined) delete members[name];
  else members[name] = replaced(members[name] ?? null, rest, by);
  return members;
}

const odd: fc.Arbitrary<Json | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom<Json>(
    null,
    '',
    '0x',
    '-1',
    '1.0',
    ' 1',
    '18446744073709551616',
    '9007199254740992',
    2 ** 53,
    -1,
    1,
    [],
  ),
  fc.constantFrom<Json>('0X00000000', `0X${'Ab'.repeat(32)}`, 'ab'.repeat(32), 'ab'.repeat(31), `0x${'zz'.repeat(32)}`),
  fc.jsonValue() as fc.Arbitrary<Json>,
);

describe('a vote', () => {
  it('as clients spell it is read', () => {
    fc.assert(
      fc.property(votes, (body) => {
        expect(readPlainAttestation(body)).toEqual(schema?.parse(body));
      }),
    );
    expect(readPlainAttestation({ ...attestation(), signingRoot: rootOf(7) })).toMatchObject({
      operation: 'ATTESTATION',
    });
  });

  it('spelled in any other way is read as the schema reads it, or not at all', () => {
    fc.assert(fc.property(votes.chain(respelled), expectNoDifference));
  });

  it('with any one value replaced or missing is read as the schema reads it, or not at all', () => {
    const place = (body: Json) => fc.constantFrom(...placesOf(body).slice(1));
    const mutated = votes.chain((body) =>
      fc.tuple(place(body as Json), odd).map(([at, by]) => replaced(body as Json, at, by) as object),
    );
    fc.assert(fc.property(mutated, expectNoDifference), { numRuns: 2000 });
  });

  it.each<[string, object]>([
    ['the root by its other name', { signing_root: rootOf(7) }],
    ['both roots', { signingRoot: rootOf(7), signing_root: rootOf(8) }],
    ['a root that is null', { signingRoot: null }],
    ['a root that is none', { signingRoot: '0x00' }],
    ['a type in lower case', { type: 'attestation' }],
    ['no fork', { fork_info: undefined }],
  ])('is left to the schema: %s', (_case, members) => {
    expect(readPlainAttestation({ ...attestation(), ...members })).toBeUndefined();
  });

  it.each(['previousVersion', 'currentVersion'])('is left to the schema: a fork with %s', (name) => {
    const vote = attestation() as { fork_info: { fork: object } };
    const fork = { ...vote.fork_info.fork, [name]: '0x06000000' };
    expect(readPlainAttestation({ ...vote, fork_info: { ...vote.fork_info, fork } })).toBeUndefined();
  });
});
