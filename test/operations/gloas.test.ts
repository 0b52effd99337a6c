// Every Gloas vector in every shape that clients send: its object root, its domain, its signing root, and a signature
// of somebody else over it. The roots in the file were computed from the specification's text and by @lodestar/types.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { computeDomain, computeSigningRoot, forkRefusal, messageFork } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { type GloasBody, gloasVectors, shapesOf, signedGloasVectors } from '../support/gloas.ts';
import { objectRoot } from '../support/operation-rows.ts';

const SEPOLIA = publicNetwork('sepolia');

function requestOf(body: GloasBody): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}

describe.skipIf(gloasVectors === undefined)('the Gloas vectors', () => {
  it('are 27, one of a type that is refused, and one with empty data', () => {
    expect(gloasVectors?.vectors).toHaveLength(27);
    expect(signedGloasVectors).toHaveLength(25);
  });

  it.each(signedGloasVectors)('$name: its roots, its domain and its signature', (vector) => {
    const request = requestOf(vector.request);
    const domains: string[] = [];
    const fork = messageFork(request, SEPOLIA);
    const root = computeSigningRoot(request, SEPOLIA, fork, (...parts) => {
      const domain = computeDomain(...parts);
      domains.push(encodeHex(domain));
      return domain;
    });
    expect(encodeHex(objectRoot(request, fork.container?.name))).toBe(vector.object_root);
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
});
