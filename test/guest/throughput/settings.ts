// What the host builds into the guest of suite "throughput" and its programs agree on.

/** VMADDR_CID_LOCAL: the parent and the enclave share it. */
export const LOOPBACK_CID = 1;
export const PORTS = { upstream: 4000, ingress: 9100, enclave: 9000, egress: 8001, direct: 5000 } as const;
export const CONFIGURATION_PATH = '/test/config.yaml';

const listener = (port: number): object => ({ listen_address: '127.0.0.1', listen_port: port });

/** The parent proxy's. */
export const CONFIGURATION = JSON.stringify({
  tee: {
    platform: 'nitro',
    nitro: {
      egress: {
        endpoints: [{ hostname: 'localhost', loopback: '127.0.1.1', vsock_port: PORTS.egress, port: PORTS.upstream }],
      },
    },
  },
  server: { listen_port: PORTS.enclave },
  parent_proxy: {
    enclave_cid: LOOPBACK_CID,
    credentials: { source: 'none' },
    ingress: { tls: listener(0), probes: listener(PORTS.ingress), metrics: listener(0) },
    metrics: listener(0),
  },
});
