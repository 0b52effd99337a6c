// Remembering changes nothing: whatever came before, a body is read as parseSignRequest reads it, and its root is the computed one.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  MAX_REMEMBERED_BODIES,
  MAX_REMEMBERED_BODY_BYTES,
  rememberedRequests,
} from '../../enclave/api/remembered-requests.ts';
import { parseSignRequest } from '../../enclave/api/sign-request.ts';
import { forkRefusal } from '../../enclave/signing/message-fork.ts';
import { publicNetwork } from '../../enclave/signing/networks.ts';
import { rememberedRoots } from '../../enclave/signing/roots/remembered.ts';
import { computeSigningRoot } from '../../enclave/signing/roots/root.ts';
import { signRequestBody } from '../signing/sign-request-arbitraries.ts';
import { attestation, randaoReveal, rootOf } from '../support/requests.ts';

const NETWORK = publicNetwork('hoodi');
const bytesOf = (body: unknown): Buffer => Buffer.from(JSON.stringify(body));

/** Good and bad bodies that come again, and near misses of them: one byte is another. */
const history = fc
  .tuple(
    fc.array(
      fc.oneof(
        signRequestBody.map(bytesOf),
        fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      ),
      { minLength: 1, maxLength: 4 },
    ),
    fc.array(fc.record({ which: fc.nat(), at: fc.option(fc.nat()), byte: fc.nat(255) }), { maxLength: 30 }),
  )
  .map(([bodies, steps]) =>
    steps.map(({ which, at, byte }) => {
      const body = Buffer.from(bodies[which % bodies.length] ?? []);
      if (at !== null && body.length > 0) body[at % body.length] = byte;
      return body;
    }),
  );

describe('remembered requests and roots', () => {
  it('are what is parsed and computed, in any order of bodies', () => {
    fc.assert(
      fc.property(history, (bodies) => {
        const parse = rememberedRequests();
        const rootOfRequest = rememberedRoots(NETWORK);
        for (const body of bodies) {
          const parsed = parse(body);
          expect(parsed).toEqual(parseSignRequest(body));
          if (parsed.kind !== 'request' || forkRefusal(parsed.request, NETWORK) !== undefined) continue;
          expect(rootOfRequest(parsed.request)).toEqual(computeSigningRoot(parsed.request, NETWORK));
        }
      }),
    );
  });

  it('give the same bytes one request', () => {
    const parse = rememberedRequests();
    const [first, again] = [parse(bytesOf(attestation())), parse(bytesOf(attestation()))];
    expect(first.kind).toBe('request');
    expect(again).toEqual(first);
    if (first.kind === 'request' && again.kind === 'request') expect(again.request).toBe(first.request);
  });

  it('do not follow a change of the bytes they were made from', () => {
    const parse = rememberedRequests();
    const body = bytesOf(randaoReveal());
    const original = Buffer.from(body);
    const first = parse(body);
    body.fill(0x20);
    expect(parse(original)).toEqual(first);
    expect(parse(body)).toMatchObject({ kind: 'refused' });
  });

  it('are forgotten when others came', () => {
    const parse = rememberedRequests();
    const requestOf = (head: number) => {
      const parsed = parse(bytesOf(attestation({ head: rootOf(head) })));
      return parsed.kind === 'request' ? parsed.request : undefined;
    };
    const first = requestOf(0);
    for (let head = 1; head < MAX_REMEMBERED_BODIES; head++) requestOf(head);
    expect(requestOf(0)).toBe(first);
    requestOf(MAX_REMEMBERED_BODIES);
    expect(requestOf(0)).not.toBe(first);
  });

  describe('are let go of by their roots:', () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const rootOfRequest = rememberedRoots(NETWORK);
    const rootedRequest = (body: Buffer): WeakRef<object> => {
      const parsed = parseSignRequest(body);
      if (parsed.kind === 'refused') throw new Error(parsed.hint);
      rootOfRequest(parsed.request);
      return new WeakRef(parsed.request);
    };
    const isHeld = async (request: WeakRef<object>): Promise<boolean> => {
      await nextTurn(); // until then a WeakRef holds what it was made of
      collectGarbage();
      return request.deref() !== undefined;
    };

    it('blocks at once', async () => {
      const [block] = fc.sample(
        signRequestBody.filter((body) => body['type'] === 'BLOCK_V2'),
        { numRuns: 1, seed: 1 },
      );
      expect(await isHeld(rootedRequest(bytesOf(block)))).toBe(false);
    });

    it('others when as many as are remembered came after them', async () => {
      const first = rootedRequest(bytesOf(attestation()));
      expect(await isHeld(first)).toBe(true);
      for (let head = 1; head <= MAX_REMEMBERED_BODIES; head++)
        rootedRequest(bytesOf(attestation({ head: rootOf(head) })));
      expect(await isHeld(first)).toBe(false);
    });
  });

  it('leave long bodies alone', () => {
    const parse = rememberedRequests();
    const body = bytesOf({ ...attestation(), padding: 'x'.repeat(MAX_REMEMBERED_BODY_BYTES) });
    const [first, again] = [parse(body), parse(body)];
    expect(again).toEqual(first);
    if (first.kind === 'request' && again.kind === 'request') expect(again.request).not.toBe(first.request);
  });
});
