// Rules on what the process listens on and reaches: TLS modes, ports, and the enclave's vsock ports.

import { isIP } from 'node:net';
import { canonicalPeerAddress } from '../../auth/cidr.ts';
import type { Config } from '../options.ts';
import { type ConfigFinding, type ConfigRule, when } from './rule.ts';

export const LISTENER_RULES: readonly ConfigRule[] = [
  {
    startupFailure: 11,
    says: 'The `vsock_port` of an egress endpoint is none of the listeners’ ports.',
    broken: ({ tee, server, metrics, tls }) =>
      tee.nitro.egress.endpoints.flatMap(({ vsock_port }, index) =>
        when([server.listen_port, metrics.listen_port, tls.listen_port].includes(vsock_port), {
          at: 'tee.nitro.egress.endpoints',
          within: [index, 'vsock_port'],
          problem: 'is the ingress port of a listener',
          remedy: 'choose a port that is neither a listener’s nor reserved (7000 to 7002, 9000)',
        }),
      ),
  },
  {
    says: '`tee.platform: nitro` needs a `tee.nitro` section.',
    broken: ({ tee }, { isSet }) =>
      when(tee.platform === 'nitro' && !isSet('tee.nitro'), {
        at: 'tee.platform',
        problem: 'is nitro without a tee.nitro section',
        remedy: 'set tee.nitro.egress.endpoints; [] when the enclave reaches nothing',
      }),
  },
  {
    says: '`tls.ratls.rotation_interval_seconds` is less than `tls.ratls.cert_validity_seconds`.',
    broken: ({ tls }) =>
      when(tls.ratls.rotation_interval_seconds >= tls.ratls.cert_validity_seconds, {
        at: 'tls.ratls.rotation_interval_seconds',
        problem: 'is not less than tls.ratls.cert_validity_seconds: certificates would expire in use',
        remedy: 'rotate earlier, or let certificates live longer',
      }),
  },
  {
    says: 'No two listeners share a port, unless they bind two different IP addresses.',
    broken: collidingListeners,
  },
];

function collidingListeners({ server, metrics, tls, tee }: Config): ConfigFinding[] {
  const listeners = [
    { at: 'server.listen_port', address: server.listen_address, port: server.listen_port },
    { at: 'metrics.listen_port', address: metrics.listen_address, port: metrics.listen_port },
    ...(tls.mode === 'disabled'
      ? []
      : [{ at: 'tls.listen_port', address: tls.listen_address, port: tls.listen_port } as const]),
  ] as const;
  return listeners.flatMap((later, position) => {
    const earlier = listeners
      .slice(0, position)
      .find(
        ({ address, port }) => port !== 0 && port === later.port && mayOverlap(address, later.address, tee.platform),
      );
    return earlier === undefined
      ? []
      : [{ at: later.at, problem: `is the same as ${earlier.at}`, remedy: 'give each listener a port of its own' }];
  });
}

/** A host name may resolve to any address. */
function mayOverlap(left: string, right: string, platform: Config['tee']['platform']): boolean {
  // In an enclave a listener is a vsock port, and addresses mean nothing.
  if (platform === 'nitro' || !isSpecific(left) || !isSpecific(right)) return true;
  return canonicalPeerAddress(left) === canonicalPeerAddress(right);
}

function isSpecific(address: string): boolean {
  return isIP(address) !== 0 && !/^[0.:]+$/.test(address);
}
