// The OpenAPI document names each signing request: whoever reads it finds every type, and a request fits one schema.

import { describe, expect, it } from 'vitest';
import { SIGN, SIGN_BATCH } from '../../service/openapi/signing.ts';
import { OPERATIONS } from '../../signer/api/operations.ts';
import { SIGN_REQUEST_SCHEMAS } from '../../signer/operations/sign-request.ts';

interface Branch {
  readonly title: string;
  readonly properties: Readonly<Record<string, { readonly pattern?: string }>>;
  readonly required: readonly string[];
  readonly oneOf?: readonly { readonly required: readonly string[] }[];
}

const WIRE_TYPES = [...SIGN_REQUEST_SCHEMAS.keys()];
const branches = (SIGN.body as unknown as { readonly oneOf: readonly Branch[] }).oneOf;
const batch = SIGN_BATCH.body as unknown as {
  readonly properties: { readonly signing_request: { readonly oneOf: readonly Branch[] } };
};

describe('the OpenAPI document of signing requests', () => {
  it('names every type, each operation under its standard name', () => {
    expect(branches.map(({ title }) => title)).toEqual(WIRE_TYPES);
    expect(WIRE_TYPES).toEqual(expect.arrayContaining([...OPERATIONS]));
  });

  it.each(WIRE_TYPES)('says that %s is of one schema alone, in any case', (type) => {
    const fitting = branches.filter(({ properties }) => {
      const pattern = new RegExp(properties['type']?.pattern ?? '');
      return pattern.test(type) && pattern.test(type.toLowerCase());
    });
    expect(fitting.map(({ title }) => title)).toEqual([type]);
  });

  it('asks for exactly one name of a message that has several', () => {
    const vote = branches.find(({ title }) => title === 'PAYLOAD_ATTESTATION');
    expect(vote?.oneOf).toEqual([
      { required: ['payload_attestation_message'] },
      { required: ['payload_attestation_data'] },
      { required: ['payload_attestation'] },
    ]);
    expect(branches.find(({ title }) => title === 'ATTESTATION')?.required).toContain('attestation');
  });

  it('names the types of a batch, and no others', () => {
    const types = batch.properties.signing_request.oneOf.map(({ title }) => title);
    expect(new Set(types)).toEqual(
      new Set([
        'ATTESTATION',
        'AGGREGATION_SLOT',
        'RANDAO_REVEAL',
        'SYNC_COMMITTEE_MESSAGE',
        'SYNC_COMMITTEE_SELECTION_PROOF',
        'PAYLOAD_ATTESTATION_MESSAGE',
        'PAYLOAD_ATTESTATION',
      ]),
    );
  });
});
