// A batch of the largest size on its way through the parent: a body and an answer of many buffers, in both directions
// of one connection, to the real program behind the enclave's port. The answer is that of a signer without a parent.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readProxyHeader } from '../../../enclave/ratls/listen.ts';
import type { RunningSigner } from '../../../rehearsal/signer.ts';
import { deployKeyFiles } from '../../support/deployment.ts';
import { type ProxyUnderTest, startProxyUnderTest } from '../../support/parent-proxy.ts';
import { attestation, batchCall, rootOf, testKey } from '../../support/requests.ts';

const MANY = 2048;
/** What a stream buffers, and a Unix socket too. */
const BUFFER_BYTES = 64 * 1024;
const HEADER_TIMEOUT_MS = 60_000;

const keys = Array.from({ length: MANY }, (_, index) => testKey(index));
const names = keys.map(({ publicKey }) => publicKey);

let signer: RunningSigner;
let proxy: ProxyUnderTest;
let listener: { close(): Promise<void> };
const open = new Set<Socket>();
beforeAll(async () => {
  [signer, proxy] = await Promise.all([deployKeyFiles(keys).start(), startProxyUnderTest()]);
  listener = await proxy.enclave.listen(9443, (stream) => void serve(stream));
});
afterAll(async () => {
  for (const socket of open) socket.destroy();
  await listener?.close();
  await Promise.all([proxy?.close(), signer?.stop()]);
});

/** As the enclave's listener does: who connected comes first, and everything after it is the client's. */
async function serve(stream: Socket): Promise<void> {
  const header = await readProxyHeader(stream, HEADER_TIMEOUT_MS);
  expect(header).toMatchObject({ kind: 'proxied', source: { address: '127.0.0.1' } });
  const program = connect(Number(new URL(signer.url).port), '127.0.0.1');
  await once(program, 'connect');
  for (const socket of [stream, program]) {
    open.add(socket);
    socket.on('error', () => undefined);
  }
  stream.pipe(program).pipe(stream);
}

it(`${MANY} keys in one request, and in the next ones`, async () => {
  const url = `http://127.0.0.1:${proxy.ingressPorts.tls}`;
  const [first, ...others] = [1, 2, 3].map((step) =>
    attestation({ source: 100 + step, target: 101 + step, head: rootOf(step) }),
  );
  expect(JSON.stringify({ identifiers: names, signing_request: first }).length).toBeGreaterThan(3 * BUFFER_BYTES);
  const carried = await batchCall(url, names, first);
  expect(carried.status).toBe(200);
  expect(carried.text.length).toBeGreaterThan(8 * BUFFER_BYTES);
  const results = JSON.parse(carried.text) as { identifier: string; signature?: string }[];
  expect(results.map(({ identifier }) => identifier)).toEqual(names);
  expect(results.every(({ signature }) => /^0x[0-9a-f]{192}$/.test(signature ?? ''))).toBe(true);

  const direct = await batchCall(signer.url, names, first); // the same vote may be signed again
  expect(direct.text).toBe(carried.text);

  for (const vote of others) {
    const { status, text } = await batchCall(url, names, vote);
    expect([status, text.includes('"error"')]).toEqual([200, false]);
  }
});
