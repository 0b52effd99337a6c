// How a vsock descriptor becomes a net.Socket. libuv's pipes serve any stream socket, but Node has no public door to
// them: either its own Pipe class opens the descriptor ("pipe"), or a Unix socket that Node has opened is replaced by
// it under its number ("dup3").

import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { createServer, Socket, type SocketConstructorOpts } from 'node:net';
import type { Addon } from './load.ts';
import { assertResult } from './transport.ts';

export type StreamVariant = 'pipe' | 'dup3';

interface DescriptorListener {
  close(): Promise<void>;
}

/** Takes over the descriptors it is given, also when it throws. */
export interface DescriptorStreams {
  readonly variant: StreamVariant;
  open(descriptor: number): Socket;
  /** @param descriptor bound, not listening @param accept whether this connection is wanted; cut off if not */
  listen(
    descriptor: number,
    backlog: number,
    accept: (descriptor: number) => boolean,
    onConnection: (socket: Socket) => void,
  ): Promise<DescriptorListener>;
}

/** Part of Node's internal Pipe (src/pipe_wrap.cc), the same from Node 20 to 26. Numbers are 0 or a negated errno. */
interface PipeHandle {
  readonly fd: number;
  onconnection?: (status: number, accepted?: PipeHandle) => void;
  open(descriptor: number): number | undefined;
  listen(backlog: number): number;
  close(onClosed?: () => void): void;
}
type PipeConstructor = new (kind: number) => PipeHandle;

const PIPE_KINDS = { socket: 0, server: 1 } as const;

/** @param wanted otherwise `pipe` when this Node has what it needs, else `dup3` */
export function openDescriptorStreams(addon: Addon, wanted?: StreamVariant): DescriptorStreams {
  if (wanted === 'dup3') return replacingStreams(addon);
  const Pipe = findPipe(addon);
  if (Pipe !== undefined) return pipeStreams(Pipe);
  if (wanted === 'pipe') throw new Error('this Node has no Pipe class that opens descriptors');
  return replacingStreams(addon);
}

function findPipe(addon: Addon): PipeConstructor | undefined {
  const donor = new Socket({ fd: assertResult('socketpair', addon.unixStream()) });
  const Pipe = handleOf(donor)?.constructor as PipeConstructor | undefined;
  donor.destroy();
  const trial = assertResult('socketpair', addon.unixStream());
  if (Pipe === undefined) {
    closeSync(trial);
    return undefined;
  }
  try {
    const socket = socketOver(openPipe(Pipe, 'socket', trial));
    const handle = handleOf(socket);
    const usable = handle?.fd === trial && typeof handle.listen === 'function';
    socket.destroy();
    return usable ? Pipe : undefined;
  } catch {
    return undefined;
  }
}

function openPipe(Pipe: PipeConstructor, kind: keyof typeof PIPE_KINDS, descriptor: number): PipeHandle {
  try {
    const handle = new Pipe(PIPE_KINDS[kind]);
    assertResult('open', handle.open(descriptor) ?? 0);
    return handle;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function socketOver(handle: PipeHandle): Socket {
  const options = { handle, allowHalfOpen: true } as unknown as SocketConstructorOpts;
  try {
    return new Socket(options);
  } catch (error) {
    handle.close();
    throw error;
  }
}

function pipeStreams(Pipe: PipeConstructor): DescriptorStreams {
  return {
    variant: 'pipe',
    open: (descriptor) => socketOver(openPipe(Pipe, 'socket', descriptor)),
    async listen(descriptor, backlog, accept, onConnection) {
      const server = openPipe(Pipe, 'server', descriptor);
      // A status is an accept that failed; for want of descriptors libuv has then cut the connection off.
      server.onconnection = (_status, accepted) => {
        if (accepted === undefined) return;
        if (accept(accepted.fd)) onConnection(socketOver(accepted));
        else accepted.close();
      };
      const result = server.listen(backlog);
      if (result < 0) server.close();
      assertResult('listen', result);
      return { close: () => new Promise((resolve) => server.close(resolve)) };
    },
  };
}

function replacingStreams(addon: Addon): DescriptorStreams {
  return {
    variant: 'dup3',
    open(descriptor) {
      const target = donorFor(descriptor, addon.unixStream);
      // Before Node first waits for this number, it has to be the other socket.
      const options: SocketConstructorOpts & { readonly manualStart: true } = {
        fd: target,
        allowHalfOpen: true,
        manualStart: true,
      };
      const socket = new Socket(options);
      try {
        replace(addon, descriptor, target);
      } catch (error) {
        socket.destroy();
        throw error;
      }
      socket.read(0);
      return socket;
    },
    async listen(descriptor, backlog, accept, onConnection) {
      const target = donorFor(descriptor, addon.unixListener);
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        if (accept(handleOf(socket)?.fd ?? -1)) onConnection(socket);
        else socket.destroy();
      });
      server.listen({ fd: target, backlog });
      try {
        // Before the event loop goes on, as above.
        replace(addon, descriptor, target);
        assertResult('listen', addon.vsockListen(target, backlog));
        await once(server, 'listening');
      } catch (error) {
        server.close();
        throw error;
      }
      return {
        async close() {
          server.close(); // its callback would wait for the connections, which stay
        },
      };
    },
  };
}

/** @throws after closing the descriptor that was to replace it */
function donorFor(descriptor: number, make: () => number): number {
  const donor = make();
  if (donor < 0) closeSync(descriptor);
  return assertResult('socket', donor);
}

/** Under the donor's number; its own is closed either way. */
function replace(addon: Addon, descriptor: number, target: number): void {
  const result = addon.replaceDescriptor(descriptor, target);
  closeSync(descriptor);
  assertResult('dup3', result);
}

function handleOf(socket: Socket): PipeHandle | undefined {
  return (socket as unknown as { readonly _handle?: PipeHandle | null })._handle ?? undefined;
}
