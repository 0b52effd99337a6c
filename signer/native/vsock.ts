// The transport over vsock (specification/enclave.md#transport). A connection from any CID but the peer's is cut off
// before anybody sees it, and connects go nowhere else.

import type { Socket } from 'node:net';
import type { Addon } from './load.ts';
import {
  assertResult,
  type ListenOptions,
  type Transport,
  TransportError,
  type TransportListener,
} from './transport.ts';
import { type DescriptorStreams, openDescriptorStreams, type StreamVariant } from './vsock-stream.ts';

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
