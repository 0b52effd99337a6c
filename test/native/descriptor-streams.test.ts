// Streams over foreign descriptors, both variants. No vsock is opened here: Unix sockets that the addon made take its
// place, which the streams cannot tell apart. The guest tests run the same over vsock.

import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { loadAddon } from '../../signer/native/load.ts';
import { openDescriptorStreams, type StreamVariant } from '../../signer/native/vsock-stream.ts';
import { addonForTests } from '../support/addon.ts';

const usable = addonForTests() && process.platform === 'linux';
const addon = usable ? loadAddon() : undefined;

/** The path by which Node reaches a Unix socket that the kernel has named (unix(7), autobind). */
function pathOfListener(descriptor: number): string {
  const inode = /\[(\d+)\]/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1];
  const line = readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .find((entry) => entry.split(/\s+/)[6] === inode);
  return `\0${line?.split('@')[1]}`;
}

function openDescriptors(): string[] {
  return readdirSync('/proc/self/fd').filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith('socket:');
    } catch {
      return false;
    }
  });
}

/** What arrives until the other end's end. Not an iteration, which would destroy both directions. */
async function received(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(socket, 'end');
  return text;
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, 'close');
}

describe.skipIf(addon === undefined)('streams over descriptors', () => {
  if (addon === undefined) return;

  it('this Node opens descriptors with its own Pipe class', () => {
    expect(openDescriptorStreams(addon).variant).toBe('pipe');
  });

  describe.each<StreamVariant>(['pipe', 'dup3'])('variant %s', (variant) => {
    const streams = openDescriptorStreams(addon, variant);

    async function listening(accept: (descriptor: number) => boolean, onConnection: (socket: Socket) => void) {
      const descriptor = addon?.unixListener() ?? -1;
      const path = pathOfListener(descriptor);
      const listener = await streams.listen(descriptor, 16, accept, onConnection);
      return { path, listener };
    }

    it('an end in one direction leaves the other open, and every descriptor is given back', async () => {
      const before = openDescriptors();
      const { path, listener } = await listening(
        () => true,
        async (socket) => void socket.end(`you said: ${await received(socket)}`),
      );
      const client = connect({ path, allowHalfOpen: true });
      client.end('hello');
      expect(await received(client)).toBe('you said: hello');
      await closed(client);
      await listener.close();
      await expect.poll(openDescriptors).toEqual(before);
    });

    it('a connection that is not wanted is cut off before anybody sees it', async () => {
      const seen: Socket[] = [];
      const { path, listener } = await listening(
        () => false,
        (socket) => void seen.push(socket),
      );
      const client = connect({ path });
      client.on('error', () => undefined);
      await closed(client);
      expect(seen).toEqual([]);
      await listener.close();
    });

    it('a listener that is closed takes no more connections, and the open ones stay', async () => {
      const accepted = Promise.withResolvers<Socket>();
      const { path, listener } = await listening(() => true, accepted.resolve);
      const client = connect({ path, allowHalfOpen: true });
      const server = await accepted.promise;
      await listener.close();
      const late = connect({ path });
      const [error] = await once(late, 'error');
      expect(error.code).toBe('ECONNREFUSED');
      server.end('still here');
      expect(await received(client)).toBe('still here');
      client.end();
      await closed(client);
    });

    it('a stream that is opened over a descriptor reads its peer’s end', async () => {
      const socket = streams.open(addon.unixStream()); // its other end is closed
      expect(await received(socket)).toBe('');
      socket.destroy();
      await closed(socket);
    });

    it('a descriptor that is none is an error and leaves nothing open', async () => {
      const gone = 1_000_000;
      const before = openDescriptors();
      expect(() => streams.open(gone)).toThrow(/EBADF/);
      await expect(
        streams.listen(
          gone,
          16,
          () => true,
          () => undefined,
        ),
      ).rejects.toThrow(/EBADF/);
      await expect.poll(openDescriptors).toEqual(before);
    });
  });
});
