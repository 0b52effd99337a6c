// The vsock ports at which an enclave finds its parent (specification/enclave.md#ports).

/** JSON lines from the enclave, each ended by LF. The parent sends nothing. */
export const LOG_PORT = 7000;
/** The parent sends a 4-byte big-endian length, so many bytes, and the end of the stream. The enclave sends nothing. */
export const CONFIGURATION_PORT = 7001;
/** HTTP/1.1: `GET CREDENTIALS_PATH` answers the container-credentials JSON. */
export const CREDENTIALS_PORT = 7002;

export const CREDENTIALS_PATH = '/credentials';
export const CONFIGURATION_LENGTH_BYTES = 4;
export const MAX_CONFIGURATION_BYTES = 1024 * 1024;
export const MAX_CREDENTIALS_BYTES = 64 * 1024;
