// What the image for QEMU's machine is built with. Everything here is of a TEST appliance.

import { ENCLAVE_CONFIGURATION } from '../appliance/settings.ts';

export const GUEST_CID = 4;
/** The host, as vhost-user devices have it; on Nitro the parent is CID 3. */
export const HOST_CID = 2;

/**
 * Measured: whoever reads PCR0 of such an image knows that it takes CID 2 for its parent and gives out unsigned
 * evidence.
 */
export const CMDLINE = `console=ttyS0 quiet panic=-1 reboot=t strongroom.parent_cid=${HOST_CID} strongroom.evidence=unsigned`;

const LOOPBACK = '{ listen_address: 127.0.0.1, listen_port: 0 }';

export const CONFIGURATION = `${ENCLAVE_CONFIGURATION}parent_proxy:
  enclave_cid: ${GUEST_CID}
  ingress: { tls: ${LOOPBACK}, probes: ${LOOPBACK}, metrics: ${LOOPBACK} }
  metrics: ${LOOPBACK}
  limits: { graceful_shutdown_timeout_seconds: 0 }
`;
