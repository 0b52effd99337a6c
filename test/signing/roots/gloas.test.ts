// Every Gloas vector in every shape that clients send: its object root, its domain, its signing root, and a signature
// of somebody else over it. The roots in the file were computed from the specification's text and by @lodestar/types.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { describe, expect, it } from 'vitest';
import { parseSignRequest, type SignRequest } from '../../../enclave/api/sign-request.ts';
import { containerFork, forkRefusal } from '../../../enclave/signing/message-fork.ts';
import { publicNetwork } from '../../../enclave/signing/networks.ts';
import { computeDomain } from '../../../enclave/signing/roots/domains.ts';
import { objectRoot } from '../../../enclave/signing/roots/object-root.ts';
import { computeSigningRoot } from '../../../enclave/signing/roots/root.ts';
import { encodeHex } from '../../../formats/hex.ts';
import { type GloasBody, gloasVectors, shapesOf, signedGloasVectors } from '../../support/gloas.ts';

const SEPOLIA = publicNetwork('sepolia');

function requestOf(body: GloasBody): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}

describe.skipIf(gloasVectors === undefined)('the Gloas vectors', () => {
  it('are 27, one of a type that is refused', () => {
    expect(gloasVectors?.vectors).toHaveLength(27);
    expect(signedGloasVectors).toHaveLength(26);
  });

  it.each(signedGloasVectors)('$name: its roots, its domain and its signature', (vector) => {
    const request = requestOf(vector.request);
    const domains: string[] = [];
    const root = computeSigningRoot(request, SEPOLIA, (...parts) => {
      const domain = computeDomain(...parts);
      domains.push(encodeHex(domain));
      return domain;
    });
    if (request.operation !== 'ATTESTATION') {
      expect(encodeHex(objectRoot(request, containerFork(request, SEPOLIA)))).toBe(vector.object_root);
    }
    expect(domains).toEqual([vector.domain]);
    expect(encodeHex(root)).toBe(vector.signing_root);
    const publicKey = PublicKey.fromHex(gloasVectors?.key.pubkey ?? '', true);
    expect(verify(root, publicKey, Signature.fromHex(vector.signature, true))).toBe(true);
  });

  it.each(signedGloasVectors)('$name: the same root in every shape', (vector) => {
    const shapes = shapesOf(vector.request);
    expect(shapes.length).toBeGreaterThan(3);
    for (const shape of shapes) {
      const request = requestOf(shape);
      expect(forkRefusal(request, SEPOLIA)).toBeUndefined();
      expect([shape, encodeHex(computeSigningRoot(request, SEPOLIA))]).toEqual([shape, vector.signing_root]);
    }
  });

  it('of INCLUSION_LIST are an operation that is not built, versioned and bare', () => {
    const body = gloasVectors?.vectors.find(({ request }) => request.type === 'INCLUSION_LIST')?.request;
    const versioned = body?.['inclusion_list'] as { data: object } | undefined;
    for (const sent of [body, { type: 'INCLUSION_LIST', inclusion_list: versioned?.data }]) {
      const parsed = parseSignRequest(Buffer.from(JSON.stringify(sent)));
      expect(parsed).toMatchObject({ reason: 'unsupported_operation' });
    }
  });
});
