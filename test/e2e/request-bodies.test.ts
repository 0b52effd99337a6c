// server.max_request_body_bytes is a promise (specification/signing.md#permits): what is smaller is not refused for its
// size by a signer that has nothing else to do, announced or chunked; what is larger is 413.

import http from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { randaoReveal, TEST_TOKEN } from '../support/requests.ts';

const MIB = 1024 * 1024;
const deployment = deploy(1);
const key = deployment.keys[0]?.publicKey ?? '';
let signer: RunningSigner;
afterEach(() => signer.stop());

interface Sent {
  readonly status: number | undefined;
  readonly body: string;
}

interface Sending {
  /** The signer has admitted the request and waits for its body; or it has answered. */
  readonly admitted: Promise<unknown>;
  finish(pieces: readonly (string | Buffer)[]): Promise<Sent>;
}

/** Without a length the body is chunked. */
function begin(length?: number): Sending {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const continued = Promise.withResolvers<void>();
  const authorization = `Bearer ${TEST_TOKEN}`;
  const request = http.request(`${signer.url}/api/v1/eth2/sign/${key}`, {
    method: 'POST',
    agent: false,
    headers: { authorization, expect: '100-continue', ...(length === undefined ? {} : { 'content-length': length }) },
  });
  request.once('continue', continued.resolve).once('response', resolve).on('error', reject);
  request.flushHeaders();
  return {
    admitted: Promise.race([continued.promise, promise]),
    async finish(pieces) {
      for (const piece of pieces) request.write(piece);
      request.end();
      const response = await promise;
      return { status: response.statusCode, body: await text(response) };
    },
  };
}

async function send(pieces: readonly (string | Buffer)[], length?: number): Promise<Sent> {
  const sending = begin(length);
  await sending.admitted;
  return sending.finish(pieces);
}

function padded(bytes: number): Buffer[] {
  const [head = '', tail = ''] = JSON.stringify({ ...randaoReveal(), padding: '%' }).split('%');
  const pieces = Array.from({ length: Math.ceil(bytes / MIB) }, () => Buffer.alloc(MIB, 'x'));
  return [Buffer.from(head), ...pieces, Buffer.from(tail)];
}

describe('with server.max_request_body_bytes: 100000000', () => {
  it('a chunked request, and bodies of nearly so many bytes, are signed', async () => {
    signer = await deployment.start({ config: { server: { max_request_body_bytes: 100_000_000 } } });
    expect(await send([JSON.stringify(randaoReveal())])).toMatchObject({ status: 200 });
    const large = padded(95 * MIB);
    expect(await send(large)).toMatchObject({ status: 200 });
    expect(await send(large, Buffer.concat(large).length)).toMatchObject({ status: 200 });
  });
});

describe('with the default', () => {
  it('200 chunked requests whose bodies are all awaited are signed', async () => {
    signer = await deployment.start();
    const sendings = Array.from({ length: 200 }, () => begin());
    await Promise.all(sendings.map(({ admitted }) => admitted));
    const bodies = sendings.map(({ finish }, epoch) => finish([JSON.stringify(randaoReveal(epoch))]));
    expect(new Set((await Promise.all(bodies)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('a chunked body that becomes too large is 413, and the signer goes on', async () => {
    signer = await deployment.start();
    const tooLarge = await send(padded(3 * MIB)).catch((error: NodeJS.ErrnoException) => error.code);
    // The signer hangs up behind its answer; a client that still writes may be told that first.
    if (typeof tooLarge === 'object') expect(tooLarge).toMatchObject({ status: 413 });
    else expect(tooLarge).toMatch(/^(ECONNRESET|EPIPE)$/);
    await signer.logged('request', { reason: 'body_too_large', status: 413 });
    expect(await send(padded(1 * MIB))).toMatchObject({ status: 200 });
  });
});
