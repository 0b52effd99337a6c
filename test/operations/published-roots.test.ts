// Signing roots on real requests: Web3Signer's published examples, an unrelated signer's, captured client traffic. Each
// root is held against a signature made by somebody else, so neither the parser nor the containers can be wrong alike.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { isForkName } from '../../signer/api/forks.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { computeSigningRoot, forkRefusal } from '../../signer/sign/message-root.ts';
import { makeNetwork, type Network } from '../../signer/sign/networks.ts';
import { vectorJson, vectorLines } from '../support/vectors.ts';
import { hexBytes, MAINNET, parse, requestOf } from './requests.ts';

interface Example {
  readonly id: string;
  readonly request: object;
  readonly request_snake_case?: object;
  readonly recomputed: { readonly mainnet: string };
  readonly signing_root_used_for_signature: string;
  readonly published_signing_root: string;
  readonly pubkey: string;
  readonly expected_signature: string;
}

interface ThirdParty {
  readonly id: string;
  readonly request: { readonly signingRoot?: string };
  readonly pubkey: string;
  readonly signing_root_recomputed: string;
  readonly expected_signature: string;
}

interface Capture {
  readonly set: string;
  readonly seq: number;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly response: { readonly status: number; readonly body: string };
}

/** The chain of the published examples. */
const TEST_NETWORK: Network = makeNetwork({
  name: 'custom',
  configName: 'custom',
  preset: 'mainnet',
  genesisValidatorsRoot: hexBytes('0x04700007fabc8282644aed6d1c7c9e21d38a03a0c4ba193f3afe428824b3a673'),
  genesisTimeSeconds: undefined,
  slotDurationMs: 12_000,
  depositChainId: undefined,
  forks: [
    { name: 'phase0', version: hexBytes('0x00000001'), epoch: 0 },
    { name: 'capella', version: hexBytes('0x00000001'), epoch: null },
  ],
});

/** That chain as the request believes it to be: its one fork version is the stated fork's, or PHASE0's. */
function testNetworkOf(request: SignRequest): Network {
  if (request.operation !== 'AGGREGATE_AND_PROOF') return TEST_NETWORK;
  const { version = 'phase0' } = request.message;
  const name = isForkName(version) ? version : 'phase0';
  return { ...TEST_NETWORK, forks: [{ name, version: hexBytes('0x00000001'), epoch: null }] };
}

const REFUSED_TYPES = ['BLOCK', 'DEPOSIT'];

function isSignedBy(pubkey: string, root: Uint8Array, signature: string): boolean {
  return verify(root, PublicKey.fromBytes(hexBytes(pubkey), true), Signature.fromBytes(hexBytes(signature), true));
}

function isRefused(example: Example): boolean {
  return REFUSED_TYPES.includes((example.request as { type: string }).type);
}

const examples = vectorJson<{ vectors: Example[] }>('signing/web3signer-openapi-examples.json')?.vectors;
const thirdParty = vectorJson<{ vectors: ThirdParty[] }>('signing/third-party-go-signer.json')?.vectors;
const captures = vectorLines<Capture>('signing/lodestar-captures.jsonl');

describe.skipIf(examples === undefined)("Web3Signer's published examples", () => {
  it('are 25, two of them of types that are refused by design', () => {
    expect(examples).toHaveLength(25);
    expect(examples?.filter(isRefused).map(({ id }) => id)).toEqual(['BLOCK (DEPRECATED)', 'DEPOSIT']);
  });

  it.each(examples?.filter((example) => !isRefused(example)) ?? [])('$id has the root that was signed', (example) => {
    const request = requestOf(example.request_snake_case ?? example.request);
    const network = testNetworkOf(request);
    expect(forkRefusal(request, network)).toBeUndefined();
    const root = computeSigningRoot(request, network);
    expect(encodeHex(root)).toBe(example.signing_root_used_for_signature);
    expect(isSignedBy(example.pubkey, root, example.expected_signature)).toBe(true);
    const given = request.givenSigningRoot;
    expect(given && encodeHex(given)).toBe(example.published_signing_root);
  });

  it('aggregates are refused where the network does not say which fork their version is', () => {
    const refusals = examples
      ?.filter((example) => !isRefused(example))
      .map((example) => requestOf(example.request_snake_case ?? example.request))
      .map((request) => [request.operation, forkRefusal(request, TEST_NETWORK)?.reason]);
    expect(refusals?.filter(([operation]) => operation === 'AGGREGATE_AND_PROOF')).toHaveLength(8);
    for (const [operation, reason] of refusals ?? []) {
      const expected = operation === 'AGGREGATE_AND_PROOF' ? 'unsupported_fork' : undefined;
      expect([operation, reason]).toEqual([operation, expected]);
    }
  });

  it.each(examples?.filter(isRefused) ?? [])('$id is refused', (example) => {
    expect(parse(example.request)).toMatchObject({ kind: 'refused', reason: 'unsupported_operation' });
  });

  it('VALIDATOR_REGISTRATION is signed under the genesis fork version of the network', () => {
    const example = examples?.find(({ id }) => id === 'VALIDATOR_REGISTRATION');
    const root = computeSigningRoot(requestOf(example?.request ?? {}), MAINNET);
    expect(encodeHex(root)).toBe(example?.recomputed.mainnet);
  });
});

describe.skipIf(thirdParty === undefined)('requests of an unrelated signer', () => {
  /**
   * Its signer drops committee_bits at slot 0 of mainnet; specification/signing.md#aggregates takes the Electra
   * container when they are there.
   */
  const DROPS_COMMITTEE_BITS = 'AGGREGATE_AND_PROOF_V2 FULU at slot 0';
  const same = thirdParty?.filter(({ id }) => id !== DROPS_COMMITTEE_BITS && !REFUSED_TYPES.includes(id));

  it('are nine, one of a refused type and one with another container', () => {
    expect(thirdParty).toHaveLength(9);
    expect(same).toHaveLength(7);
  });

  it.each(same ?? [])('$id has the root that was signed', (vector) => {
    const request = requestOf(vector.request);
    const root = computeSigningRoot(request, testNetworkOf(request));
    expect(encodeHex(root)).toBe(vector.signing_root_recomputed);
    expect(isSignedBy(vector.pubkey, root, vector.expected_signature)).toBe(true);
  });

  it('an aggregate with committee_bits has the Electra root, so the other root that came with it does not match', () => {
    const vector = thirdParty?.find(({ id }) => id === DROPS_COMMITTEE_BITS);
    const request = requestOf(vector?.request ?? {});
    const root = encodeHex(computeSigningRoot(request, testNetworkOf(request)));
    expect(root).toBe('0x1180bcb41bda522b3420274c6e4931c37ecf4eef99a57e4d04fc81e82b2ced40');
    expect(request.givenSigningRoot && encodeHex(request.givenSigningRoot)).toBe(vector?.signing_root_recomputed);
  });

  it('without committee_bits the same aggregate has, in a fork before Electra, the root that signer computed', () => {
    const vector = thirdParty?.find(({ id }) => id === DROPS_COMMITTEE_BITS);
    const body = JSON.parse(JSON.stringify(vector?.request)) as {
      aggregate_and_proof: { version: string; data: { aggregate: { committee_bits?: string } } };
    };
    delete body.aggregate_and_proof.data.aggregate.committee_bits;
    const stated = requestOf(body);
    expect(forkRefusal(stated, testNetworkOf(stated))?.reason).toBe('fork_mismatch');
    body.aggregate_and_proof.version = 'DENEB';
    const request = requestOf(body);
    const root = computeSigningRoot(request, testNetworkOf(request));
    expect(encodeHex(root)).toBe(vector?.signing_root_recomputed);
    expect(isSignedBy(vector?.pubkey ?? '', root, vector?.expected_signature ?? '')).toBe(true);
  });
});

describe.skipIf(captures === undefined)('captured traffic of Lodestar', () => {
  const signed = captures?.filter(({ method }) => method === 'POST') ?? [];

  it('has 152 signing requests, all answered with a signature', () => {
    expect(signed).toHaveLength(152);
    expect(signed.every(({ response }) => response.status === 200)).toBe(true);
  });

  it.each(signed)('$set $seq has the root that was signed', (capture) => {
    const request = requestOf(capture.body);
    expect(forkRefusal(request, MAINNET)).toBeUndefined();
    const root = computeSigningRoot(request, MAINNET);
    const pubkey = capture.path.split('/').at(-1) ?? '';
    const { signature } = JSON.parse(capture.response.body) as { signature: string };
    expect(isSignedBy(pubkey, root, signature)).toBe(true);
    expect(request.givenSigningRoot).toEqual(Buffer.from(root));
  });
});
