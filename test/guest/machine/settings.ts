// What the image for QEMU's machine is built with. Everything here is of a TEST appliance.

import { parse, stringify } from 'yaml';
import { ENCLAVE_CONFIGURATION } from '../appliance/settings.ts';

export const GUEST_CID = 4;
/** The host, as vhost-user devices have it; on Nitro the parent is CID 3. */
export const HOST_CID = 2;

/**
 * Measured: whoever reads PCR0 of such an image knows that it takes CID 2 for its parent and gives out unsigned
 * evidence.
 */
export const CMDLINE = `console=ttyS0 quiet panic=-1 reboot=t strongroom.parent_cid=${HOST_CID} strongroom.evidence=unsigned`;

interface Sections {
  readonly signer_state: object;
  readonly tee: { readonly nitro: { readonly egress: { readonly endpoints: readonly object[] } } };
}

const LOOPBACK = { listen_address: '127.0.0.1', listen_port: 0 };
const { signer_state: state, ...sections } = parse(ENCLAVE_CONFIGURATION) as Sections;

/**
 * With ten minutes until its right to sign lapses: a machine that is emulated on a busy one would wait and jump, as
 * specified, and then refuse the votes of the checks.
 */
export const CONFIGURATION = stringify(
  {
    ...sections,
    signer_state: { ...state, refresh_interval_seconds: 120 },
    parent_proxy: {
      enclave_cid: GUEST_CID,
      ingress: { tls: LOOPBACK, probes: LOOPBACK, metrics: LOOPBACK },
      metrics: LOOPBACK,
      limits: { graceful_shutdown_timeout_seconds: 0 },
    },
  },
  { aliasDuplicateObjects: false },
);

export const DATABASE = {
  host: 'db.strongroom.test',
  vsockPort: 8003,
  port: 5432,
  name: 'slashing',
  role: 'signer',
} as const;

/** The same appliance with its slashing records in PostgreSQL. @param nitro in the place of the word for a parent's */
export function databaseConfiguration(nitro: object, password?: string): string {
  const { tee, ...others } = parse(CONFIGURATION) as Sections;
  const { host, vsockPort, port, name, role } = DATABASE;
  const own = { hostname: host, loopback: '127.0.0.4', vsock_port: vsockPort, port };
  const user = password === undefined ? role : `${role}:${password}`;
  return stringify({
    ...others,
    tee: { ...tee, nitro: { egress: { endpoints: [...tee.nitro.egress.endpoints, own] }, ...nitro } },
    anti_slashing: { backend: 'postgres', url: `postgres://${user}@${host}:${port}/${name}`, jump_at_boot: false },
  });
}
