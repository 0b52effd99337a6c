// What the host builds into the guest and the guest's programs agree on. Everything here is of a TEST appliance.

export const REGION = 'eu-central-1';
export const ACCOUNT = '111122223333';
export const DYNAMODB_HOST = `dynamodb.${REGION}.amazonaws.com`;
export const KMS_HOST = `kms.${REGION}.amazonaws.com`;

const custodyKey = (number: number): string =>
  `arn:aws:kms:${REGION}:${ACCOUNT}:key/00000000-0000-4000-8000-00000000000${number}`;
export const CUSTODY_KEYS = [1, 2, 3].map(custodyKey);
/** Of the ceremony after the first one. */
export const LATER_CUSTODY_KEYS = [4, 5, 6].map(custodyKey);
export const TABLES = { state: 'strongroom-state', keys: 'strongroom-keys', slashing: 'strongroom-slashing' } as const;

/**
 * In the guest CID 1 loops back: the parent and the enclave share one CID, so the enclave's probes keep off the
 * heartbeat's port.
 */
export const LOOPBACK_CID = 1;
export const HEARTBEAT_PORT = 9000;
export const ENCLAVE_PORTS = { tls: 9443, probes: 9001, metrics: 3000 } as const;

/** In the guest's file system; the stand-ins' files are beside the image's own. */
export const GUEST = {
  root: '/run/nsm-root',
  node: '/usr/bin/node',
  signer: '/app',
  /** As bundle.ts lays them. */
  programs: '/test/programs/bundle',
  settings: '/test/settings.json',
  configuration: '/test/config.yaml',
  measurements: '/test/pcrs.json',
  /** By the name of an image: what it has in the place of the first one's files, and its pcrs.json. */
  images: '/test/images',
  /** Registers that the NSM has after the next power cycle. */
  nsm: '/run/nsm-registers.json',
  certificate: '/test/tls/server.crt',
  key: '/test/tls/server.key',
} as const;

/** On the parent's side, which has a network of its own. */
export const PARENT_HOSTS = [
  ['127.0.0.1', 'localhost'],
  ['127.0.0.10', DYNAMODB_HOST],
  ['127.0.0.11', KMS_HOST],
] as const;

/** What the host tells the guest. */
export interface GuestSettings {
  readonly identity: string;
  /** Measured registers of the image, hex, for the NSM to start with. */
  readonly registers: Readonly<Record<string, string>>;
  /** Images that follow the first one, in order. */
  readonly later: readonly {
    readonly name: LaterImage;
    readonly registers: Readonly<Record<string, string>>;
    readonly files: readonly string[];
  }[];
}

/** An image with the first one's ceremony, then one with the next ceremony. */
export type LaterImage = 'upgraded' | 'rotated';

/** All of the configuration but what the parent proxy alone reads. */
export const ENCLAVE_CONFIGURATION = enclaveConfiguration([]);

/** @param accepted measurements of images that may have made and wrapped the master key */
export function enclaveConfiguration(accepted: readonly Readonly<Record<string, string>>[]): string {
  const images = accepted.map(({ 0: PCR0, 1: PCR1, 2: PCR2 }) => ({ PCR0, PCR1, PCR2 }));
  return `# Configuration of the TEST appliance.
network: mainnet
tee:
  platform: nitro
  nitro:
    egress:
      endpoints:
        - { hostname: ${DYNAMODB_HOST}, loopback: 127.0.0.2, vsock_port: 8001 }
        - { hostname: ${KMS_HOST}, loopback: 127.0.0.3, vsock_port: 8002 }
    unsafe_parent_writes_tables: true
    accepted_images: ${JSON.stringify(images)}
server:
  listen_port: ${ENCLAVE_PORTS.probes}
  seccomp: required
  max_request_body_bytes: 2097152
metrics:
  listen_port: ${ENCLAVE_PORTS.metrics}
tls:
  mode: ratls
  listen_port: ${ENCLAVE_PORTS.tls}
signer_state: { backend: dynamodb, table: ${TABLES.state} }
key_sources:
  dynamodb: { table: ${TABLES.keys} }
anti_slashing: { backend: dynamodb, table: ${TABLES.slashing}, jump_at_boot: false }
receipts: { storage: state_table, interval_seconds: 5 }
chamber:
  keys:
    generate_keys: { enabled: true }
logging: { format: json }
`;
}

export const CONFIGURATION = withParentProxy(ENCLAVE_CONFIGURATION);

export function withParentProxy(configuration: string): string {
  return `${configuration}parent_proxy:
  enclave_cid: ${LOOPBACK_CID}
  ingress:
    tls: { listen_address: 127.0.0.1 }
    probes: { listen_address: 127.0.0.1 }
    metrics: { listen_address: 127.0.0.1 }
`;
}
