// One vsock port a declared endpoint → TCP to that host and port: nothing that comes from the enclave names a host or a
// port. The name is resolved for every connection.

import { lookup as systemLookup } from 'node:dns';
import { createConnection, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { EgressEndpoint } from '../../signer/api/egress.ts';
import { TransportError } from '../../signer/native/transport.ts';
import { errorWord, pacedWarning } from '../log.ts';
import type { Limits, ProxyWorld } from '../world.ts';
import { connectFailure } from './connect-failure.ts';
import { createForwarding, type ForwardingListener, TCP_BUFFER_BYTES } from './forwarding.ts';

const service = 'egress';
/** An address that has not answered by then is left for the next one; the last has the whole time. */
const NEXT_ADDRESS_MS = 500;

export async function listenEgress(
  endpoint: EgressEndpoint,
  limits: Limits,
  world: ProxyWorld,
  lookup: LookupFunction = systemLookup,
): Promise<ForwardingListener> {
  const { vsock_port: port, hostname } = endpoint;
  const { metrics, clock } = world;
  const log = world.logger.module('egress');
  const forwarding = createForwarding(service, port, limits, metrics);
  const upstreams = new Set<Socket>();
  const warn = pacedWarning(log, clock, 'the endpoint cannot be reached');
  const shared = sharedLookup(lookup);

  const forward = async (enclave: Socket): Promise<void> => {
    enclave.pause();
    const { socket: upstream, connected } = connectEndpoint(endpoint, limits.connectTimeoutMs, shared);
    upstreams.add(upstream);
    upstream.once('close', () => upstreams.delete(upstream));
    const abandon = (): unknown => upstream.destroy();
    enclave.once('close', abandon);
    try {
      await connected;
      enclave.off('close', abandon); // from here on the relay decides
      forwarding.countArrival('forwarded');
      await forwarding.carry(upstream, enclave);
    } catch (error) {
      const reason = connectFailure(error);
      forwarding.countArrival('connect_failed');
      forwarding.countFailure(reason);
      warn({ endpoint: `${hostname}:${endpoint.port}`, port, reason, error: errorWord(error) });
      enclave.destroy();
    }
  };

  const listener = await world.transport.listen(port, (enclave) => {
    if (forwarding.gate.admit(enclave)) void forward(enclave);
  });
  log.info({ vsock_port: port, endpoint: `${hostname}:${endpoint.port}` }, 'listening');
  return {
    port,
    close: () => listener.close(),
    endWhenQuiet: forwarding.endWhenQuiet,
    empty: forwarding.gate.empty,
    cutAll() {
      forwarding.gate.cutAll();
      for (const upstream of upstreams) upstream.destroy();
    },
  };
}

/** Every address the name has, IPv6 and IPv4, one after the other (RFC 8305), within one time limit. */
function connectEndpoint(
  { hostname, port }: EgressEndpoint,
  timeoutMs: number,
  lookup: LookupFunction,
): { readonly socket: Socket; readonly connected: Promise<void> } {
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>();
  const options: TcpNetConnectOpts & { readonly highWaterMark: number } = {
    host: hostname,
    port,
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    allowHalfOpen: true,
    noDelay: true,
    highWaterMark: TCP_BUFFER_BYTES,
  };
  const socket = createConnection(options);
  const timer = setTimeout(() => {
    reject(new TransportError('ETIMEDOUT', `no connection to ${hostname}:${port} within ${timeoutMs} ms`));
    socket.destroy();
  }, timeoutMs);
  socket.on('error', reject); // stays: after the connect it rejects nothing, and the relay sees the close
  socket.once('connect', () => {
    clearTimeout(timer);
    resolve();
  });
  socket.once('close', () => {
    clearTimeout(timer);
    reject(new TransportError('ECONNRESET', 'the enclave gave up'));
  });
  return { socket, connected };
}

type LookupAnswer = Parameters<Parameters<LookupFunction>[2]>;

/** A resolver that hangs holds one thread of the pool, not all of them. */
function sharedLookup(lookup: LookupFunction): LookupFunction {
  const waiting = new Map<string, ((...answer: LookupAnswer) => void)[]>();
  return (hostname, options, callback) => {
    const key = JSON.stringify([hostname, options]);
    const others = waiting.get(key);
    if (others !== undefined) {
      others.push(callback);
      return;
    }
    const callbacks = [callback];
    waiting.set(key, callbacks);
    lookup(hostname, options, (...answer) => {
      waiting.delete(key);
      for (const each of callbacks) each(...answer);
    });
  };
}
