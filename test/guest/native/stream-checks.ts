// What a stream over vsock has to be: half-open at both ends, with backpressure, complete, and there in thousands.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Addon } from '../../../signer/native/load.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import type { StreamVariant } from '../../../signer/native/vsock-stream.ts';
import { type Checks, openSockets } from '../checks.ts';
import { LOOPBACK_CID } from './settings.ts';
import { closed, echo, received } from './streams.ts';

const PORT = 6100;
/** The variant that every Node so far takes has all of them; the other one a wave. */
const CONNECTIONS = { pipe: 2000, dup3: 500 } as const;
const WAVE = 500;
const PIECE_BYTES = 64 * 1024;
const PIECES = 128;

export async function checkStreams(addon: Addon, check: Checks['check'], variant: StreamVariant): Promise<void> {
  const transport = vsockTransport(addon, { peerCid: LOOPBACK_CID, streams: variant });

  await check(`${variant}: an end in one direction leaves the other open, at either end`, async () => {
    const accepted = Promise.withResolvers<Socket>();
    const listener = await transport.listen(PORT, accepted.resolve);
    const client = await transport.connect(PORT);
    const server = await accepted.promise;
    client.end('question');
    assert.equal(await received(server), 'question');
    assert(server.writable && client.readable);
    server.write('first part, ');
    server.end('and the rest');
    assert.equal(await received(client), 'first part, and the rest');
    await Promise.all([closed(client), closed(server)]);
    await listener.close();
  });

  await check(`${variant}: a reader that pauses stops the writer, and nothing is lost`, async () => {
    const accepted = Promise.withResolvers<Socket>();
    const listener = await transport.listen(PORT, (socket) => accepted.resolve(socket.pause()));
    const client = await transport.connect(PORT);
    const server = await accepted.promise;
    const piece = randomBytes(PIECE_BYTES);
    for (let count = 0; count < PIECES; count++) client.write(piece);
    client.end();
    // With nobody reading, far less than was written fits into the sockets' buffers.
    await new Promise((resolve) => setImmediate(resolve));
    assert(client.writableLength > (PIECES / 2) * PIECE_BYTES, `only ${client.writableLength} bytes wait`);
    const hash = createHash('sha256');
    let bytes = 0;
    server.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      bytes += chunk.length;
    });
    server.resume();
    await once(server, 'end');
    assert.equal(bytes, PIECES * PIECE_BYTES);
    assert.equal(hash.digest('hex'), sha256Repeated(piece, PIECES));
    server.end();
    await Promise.all([closed(client), closed(server)]);
    await listener.close();
  });

  await check(`${variant}: a peer that destroys the stream ends it for the writer`, async () => {
    const listener = await transport.listen(PORT, (socket) => void socket.once('data', () => socket.destroy()));
    const client = await transport.connect(PORT);
    const gone = closed(client);
    const writing = setInterval(() => client.write('x'.repeat(1000)), 5);
    await gone;
    clearInterval(writing);
    await listener.close();
  });

  await check(`${variant}: ${CONNECTIONS[variant]} connections at the same time, each its own`, async () => {
    const before = openSockets();
    const listener = await transport.listen(PORT, echo);
    const clients: Socket[] = [];
    while (clients.length < CONNECTIONS[variant]) {
      const wave = await Promise.all(Array.from({ length: WAVE }, () => transport.connect(PORT)));
      clients.push(...wave);
      await Promise.all(wave.map(answered)); // all accepted: the next wave finds an empty queue
    }
    assert(openSockets() >= before + 2 * CONNECTIONS[variant]);
    const answers = clients.map(async (client, index) => {
      client.end(`I am ${index}`);
      return (await received(client)) === `I am ${index}`;
    });
    assert((await Promise.all(answers)).every((right) => right));
    await Promise.all(clients.map(closed));
    await listener.close();
  });

  await check(
    `${variant}: a full accept queue resets the next connection at once, and the others are served`,
    async () => {
      const listener = await transport.listen(PORT, echo, { backlog: 8 });
      const outcomes = await Promise.allSettled(Array.from({ length: 64 }, () => transport.connect(PORT)));
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert(refused.length > 0 && refused.every(({ reason }) => reason.code === 'ECONNRESET'));
      const connected = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      await Promise.all(connected.map(answered));
      await Promise.all(connected.map((socket) => closed(socket.end())));
      await listener.close();
    },
  );

  await check(`${variant}: a listener that is closed takes no more, and open streams stay`, async () => {
    const accepted = Promise.withResolvers<Socket>();
    const listener = await transport.listen(PORT, accepted.resolve);
    const client = await transport.connect(PORT);
    const server = await accepted.promise;
    await listener.close();
    await assert.rejects(transport.connect(PORT));
    server.end('still here');
    assert.equal(await received(client), 'still here');
    client.end();
    await Promise.all([closed(client), closed(server)]);
  });
}

/** One byte there and back. */
async function answered(socket: Socket): Promise<void> {
  socket.write('.');
  const [answer] = await once(socket, 'data');
  assert.equal(String(answer), '.');
}

function sha256Repeated(piece: Buffer, times: number): string {
  const hash = createHash('sha256');
  for (let count = 0; count < times; count++) hash.update(piece);
  return hash.digest('hex');
}
