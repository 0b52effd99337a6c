// The transport over vsock (specification/enclave.md#transport). A connection from any CID but the peer's is cut off
// before anybody sees it, and connects go nowhere else.

import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { createServer, Socket, type SocketConstructorOpts } from 'node:net';
import type { Addon } from './load.ts';
import {
  assertResult,
  type ListenOptions,
  type Transport,
  TransportError,
  type TransportListener,
} from './transport.ts';

/** The parent, as an enclave sees it (AWS Nitro Enclaves, "vsock"). */
export const PARENT_CID = 3;
/** A full queue resets connections, and libuv accepts one in a round: with 128, 271 of 400 at once were lost. */
const DEFAULT_BACKLOG = 4096;
const DEFAULT_CONNECT_TIMEOUT_MS = 3000;
/** setTimeout's limit. */
const MAX_TIMEOUT_MS = 0x7fff_ffff;

interface VsockTransportOptions {
  /** The only CID to talk with. */
  readonly peerCid?: number;
  /** Default: what this Node can do best. */
  readonly streams?: StreamVariant;
}

/** @throws Error where there is no vsock */
export function vsockTransport(addon: Addon, options: VsockTransportOptions = {}): Transport {
  const peerCid = options.peerCid ?? PARENT_CID;
  const streams = openDescriptorStreams(addon, options.streams);
  return {
    connect: (port, given) => connectTo(addon, streams, { cid: peerCid, port }, given),
    listen: (port, onConnection, given) => listenOn(addon, streams, { cid: peerCid, port }, onConnection, given),
  };
}

interface Address {
  readonly cid: number;
  readonly port: number;
}

async function connectTo(
  addon: Addon,
  streams: DescriptorStreams,
  address: Address,
  options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
): Promise<Socket> {
  const { signal, timeoutMs = DEFAULT_CONNECT_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) throw new RangeError(`timeoutMs: ${timeoutMs}`);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const settle = (result: number): void => {
    finish();
    try {
      assertResult(describe('connect', address), result);
      resolve(streams.open(result));
    } catch (error) {
      reject(error);
    }
  };
  const underWay = addon.vsockConnect(address.cid, address.port, settle);
  const giveUp = (error: unknown): void => {
    if (typeof underWay !== 'number') addon.vsockCancel(underWay);
    finish();
    reject(error);
  };
  const onAbort = (): void => giveUp(signal?.reason);
  const timer = setTimeout(() => giveUp(timedOut(address, timeoutMs)), timeoutMs);
  const finish = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  };
  signal?.addEventListener('abort', onAbort);
  if (typeof underWay === 'number') settle(underWay);
  return await promise;
}

async function listenOn(
  addon: Addon,
  streams: DescriptorStreams,
  address: Address,
  onConnection: (socket: Socket) => void,
  { backlog = DEFAULT_BACKLOG }: ListenOptions = {},
): Promise<TransportListener> {
  const descriptor = assertResult(describe('listen', address), addon.vsockBind(address.port));
  const fromPeer = (accepted: number): boolean => addon.vsockPeerCid(accepted) === address.cid;
  return await streams.listen(descriptor, backlog, fromPeer, onConnection);
}

function timedOut(address: Address, timeoutMs: number): TransportError {
  return new TransportError('ETIMEDOUT', `${describe('connect', address)} ETIMEDOUT: no answer in ${timeoutMs} ms`);
}

function describe(call: 'connect' | 'listen', { cid, port }: Address): string {
  return call === 'connect' ? `connect to vsock ${cid}:${port}` : `listen on vsock port ${port}`;
}

// How a vsock descriptor becomes a net.Socket. libuv's pipes serve any stream socket, but Node has no public door to
// them: either its own Pipe class opens the descriptor ("pipe"), or a Unix socket that Node has opened is replaced by
// it under its number ("dup3").

export type StreamVariant = 'pipe' | 'dup3';

interface DescriptorListener {
  close(): Promise<void>;
}

/** Takes over the descriptors it is given, also when it throws. */
interface DescriptorStreams {
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
