// What the host builds into the guest of suite "native" and its programs agree on.

export const TLS_FILES = { certificate: '/test/tls/server.crt', key: '/test/tls/server.key' } as const;

/** VMADDR_CID_LOCAL: vsock_loopback, and the only CID that answers in this guest. */
export const LOOPBACK_CID = 1;
/** Where short-lived-peer.ts listens. */
export const SHORT_LIVED_PORT = 7777;
