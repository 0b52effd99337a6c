// What the host builds into the guest of suite "native" and its programs agree on.

export const TLS_FILES = { certificate: '/test/tls/server.crt', key: '/test/tls/server.key' } as const;

/** VMADDR_CID_LOCAL: vsock_loopback, and the only CID that answers in this guest. */
export const LOOPBACK_CID = 1;
/** Where the checks' own process sends back what comes. */
export const ECHO_PORT = 7776;
/** Where the processes listen that are there to be killed. */
export const SHORT_LIVED_PORT = 7777;
