// TCP on the parent → one port of the enclave; to the RA-TLS port it opens with a PROXY header that names the client.
// Nothing of what clients send is looked at.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { MAPPED_PREFIX, parsePeerAddress } from '../../common/formats/ip-address.ts';
import { COMMAND, type ProxyAddresses, SIGNATURE, TCP_OVER } from '../../common/formats/proxy-header.ts';
import type { Ingress, ProxyAddress } from '../configuration.ts';
import { errorWord, pacedWarning } from '../log.ts';
import type { Limits, ProxyWorld } from '../world.ts';
import { connectFailure } from './connect-failure.ts';
import { createForwarding, type ForwardingListener, TCP_BUFFER_BYTES } from './forwarding.ts';
import { reachEnclave } from './reach.ts';

interface IngressOptions {
  readonly name: Ingress;
  readonly listen: ProxyAddress;
  readonly enclavePort: number;
  /** Only where the enclave's listener expects it: at the RA-TLS port. */
  readonly proxyHeader: boolean;
  readonly limits: Limits;
}

const BACKLOG = 4096;
/**
 * Over TLS: hello and certificate, the end of the handshake and tickets, a request and its answer. A client that only
 * begins a request never gets there.
 */
const TURNS_TO_AN_ANSWER = { plain: 2, tls: 6 };

export async function listenIngress(options: IngressOptions, world: ProxyWorld): Promise<ForwardingListener> {
  const { name: service, enclavePort: port, limits, listen } = options;
  const { metrics, clock } = world;
  const log = world.logger.module('ingress');
  const forwarding = createForwarding(service, port, limits, metrics);
  const givingUp = new AbortController();
  const warnAbsent = pacedWarning(log, clock, 'the enclave does not take connections; is it running, with this CID?');
  const warnAccept = pacedWarning(log, clock, 'connections could not be accepted; raise the limit of file descriptors');

  const forward = async (client: Socket): Promise<void> => {
    const header = options.proxyHeader ? proxyHeaderOf(client) : Buffer.alloc(0);
    if (header === undefined) {
      forwarding.countArrival('gone'); // it was reset while it waited to be accepted
      client.destroy();
      return;
    }
    try {
      const enclave = await reachEnclave(world, port, limits, givingUp.signal, (error) => {
        forwarding.countFailure(connectFailure(error));
      });
      if (header.length > 0) enclave.write(header);
      forwarding.countArrival('forwarded');
      const { plain, tls } = TURNS_TO_AN_ANSWER;
      await forwarding.carry(client, enclave, options.proxyHeader ? tls : plain);
    } catch (error) {
      forwarding.countArrival('connect_failed');
      if (!givingUp.signal.aborted) warnAbsent({ service, port, error: errorWord(error) });
      if (!client.destroyed) client.resetAndDestroy();
    }
  };

  const server = createServer(
    { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, highWaterMark: TCP_BUFFER_BYTES },
    (client) => {
      if (forwarding.gate.admit(client, false)) void forward(client);
    },
  );
  server.listen({ host: listen.host, port: listen.port, backlog: BACKLOG });
  await once(server, 'listening');
  server.on('error', (error) => {
    metrics.at('acceptFailures', { service, port }).add(1);
    warnAccept({ service, port, error: errorWord(error) });
  });
  const bound = boundPort(server);
  log.info({ service, listen: `${listen.host}:${bound}`, vsock_port: port }, 'listening');

  return {
    port: bound,
    close: async () => void server.close(),
    endWhenQuiet: forwarding.endWhenQuiet,
    empty: forwarding.gate.empty,
    cutAll() {
      givingUp.abort();
      forwarding.gate.cutAll();
    },
  };
}

function proxyHeaderOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): Buffer | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  if (localAddress === undefined || localPort === undefined) return undefined;
  return encodeProxyHeader({
    source: { address: remoteAddress, port: remotePort },
    destination: { address: localAddress, port: localPort },
  });
}

export function boundPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return address.port;
}

// The PROXY header that the parent proxy writes before the bytes of a client: common/formats/proxy-header.ts reads it
// in the enclave, which writes none.

/** Mapped addresses are written as IPv4; when the two differ in family, both as IPv6. @throws RangeError */
export function encodeProxyHeader({ source, destination }: ProxyAddresses): Buffer {
  const given = [source, destination].map(({ address }) => bytesOf(address));
  const sameFamily = given.every((bytes) => bytes.length === given[0]?.length);
  const addresses = sameFamily ? given : given.map(asIpv6);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(source.port, 0);
  ports.writeUInt16BE(destination.port, 2);
  const family = addresses[0]?.length === 4 ? TCP_OVER.ipv4 : TCP_OVER.ipv6;
  return encode(COMMAND.proxy, family, Buffer.concat([...addresses, ports]));
}

/** @param bytes 4, or 16 which are returned as they are */
function asIpv6(bytes: Uint8Array): Uint8Array {
  return bytes.length === 16 ? bytes : Buffer.concat([MAPPED_PREFIX, bytes]);
}

function encode(command: number, family: number, body: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  return Buffer.concat([SIGNATURE, Buffer.from([command, family]), length, body]);
}

function bytesOf(address: string): Uint8Array {
  const bytes = parsePeerAddress(address);
  if (bytes === undefined) throw new RangeError(`${JSON.stringify(address)} is no IP address`);
  return bytes;
}
