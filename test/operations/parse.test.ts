// Remembering changes nothing: whatever came before, a body is read as parseSignRequest reads it, and its root is the
// computed one.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  MAX_REMEMBERED_BODIES,
  MAX_REMEMBERED_BODY_BYTES,
  parseSignRequest,
  rememberedRequests,
} from '../../signer/operations/parse.ts';
import { computeSigningRoot, forkRefusal, signingRoots } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { signRequestBody } from '../sign/sign-request-arbitraries.ts';
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
        const { parse, rootOf: rootOfRequest } = rememberedRequests(signingRoots(NETWORK));
        for (const body of bodies) {
          const parsed = parse(body);
          expect(parsed).toEqual(parseSignRequest(body));
          if (parsed.kind !== 'request' || forkRefusal(parsed.request, NETWORK) !== undefined) continue;
          const root = computeSigningRoot(parsed.request, NETWORK);
          expect(rootOfRequest(parsed.request)).toEqual(root);
          expect(rootOfRequest(parsed.request)).toEqual(root);
        }
      }),
    );
  });

  it('give the same bytes one request', () => {
    const { parse } = rememberedRequests(signingRoots(NETWORK));
    const [first, again] = [parse(bytesOf(attestation())), parse(bytesOf(attestation()))];
    expect(first.kind).toBe('request');
    expect(again).toEqual(first);
    if (first.kind === 'request' && again.kind === 'request') expect(again.request).toBe(first.request);
  });

  it('give the same bytes one root, and other requests one of their own', () => {
    const { parse, rootOf: rootOfRequest } = rememberedRequests(signingRoots(NETWORK));
    const rootOfVote = (head: number) => {
      const parsed = parse(bytesOf(attestation({ head: rootOf(head) })));
      if (parsed.kind === 'refused') throw new Error(parsed.hint);
      return rootOfRequest(parsed.request);
    };
    const first = rootOfVote(0);
    expect(rootOfVote(0)).toBe(first);
    expect(rootOfVote(1)).not.toEqual(first);
    for (let head = 2; head <= MAX_REMEMBERED_BODIES; head++) rootOfVote(head);
    expect(rootOfVote(MAX_REMEMBERED_BODIES + 1)).not.toEqual(first); // it has the place that the first one had
    expect(rootOfVote(0)).toEqual(first);
  });

  it('do not follow a change of the bytes they were made from', () => {
    const { parse } = rememberedRequests(signingRoots(NETWORK));
    const body = bytesOf(randaoReveal());
    const original = Buffer.from(body);
    const first = parse(body);
    body.fill(0x20);
    expect(parse(original)).toEqual(first);
    expect(parse(body)).toMatchObject({ kind: 'refused' });
  });

  it('are forgotten when others came', () => {
    const { parse } = rememberedRequests(signingRoots(NETWORK));
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

  describe('are let go of, with their roots:', () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const { parse, rootOf: rootOfRequest } = rememberedRequests(signingRoots(NETWORK));
    const rootedRequest = (body: Buffer): WeakRef<object> => {
      const parsed = parse(body);
      if (parsed.kind === 'refused') throw new Error(parsed.hint);
      rootOfRequest(parsed.request);
      return new WeakRef(parsed.request);
    };
    const isHeld = async (request: WeakRef<object>): Promise<boolean> => {
      await nextTurn(); // until then a WeakRef holds what it was made of
      collectGarbage();
      return request.deref() !== undefined;
    };

    it('long bodies, as whole blocks have, at once', async () => {
      const body = bytesOf({ ...attestation(), padding: 'x'.repeat(MAX_REMEMBERED_BODY_BYTES) });
      expect(await isHeld(rootedRequest(body))).toBe(false);
    });

    it('others when as many as are remembered came after them', async () => {
      const first = rootedRequest(bytesOf(attestation()));
      expect(await isHeld(first)).toBe(true);
      for (let head = 100; head < 100 + MAX_REMEMBERED_BODIES; head++)
        rootedRequest(bytesOf(attestation({ head: rootOf(head) })));
      expect(await isHeld(first)).toBe(false);
    });
  });

  it('leave long bodies alone', () => {
    const { parse } = rememberedRequests(signingRoots(NETWORK));
    const body = bytesOf({ ...attestation(), padding: 'x'.repeat(MAX_REMEMBERED_BODY_BYTES) });
    const [first, again] = [parse(body), parse(body)];
    expect(again).toEqual(first);
    if (first.kind === 'request' && again.kind === 'request') expect(again.request).not.toBe(first.request);
  });
});
