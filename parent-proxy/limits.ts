// Limits that no operator has a reason to change; the others are options.

/** More than one are there while the enclave restarts. The newest takes the oldest one's place. */
export const MAX_LOG_CONNECTIONS = 4;
/** The rest of a longer line is dropped, and the line says so. The enclave sends no longer ones. */
export const MAX_LOG_LINE_BYTES = 64 * 1024;
/** journald breaks lines at 48 KiB (journald.conf(5), LineMax): what is behind would stand there as the proxy's own. */
export const MAX_WRITTEN_LOG_LINE_BYTES = 47 * 1024;

export const MAX_CONFIGURATION_CONNECTIONS = 16;
export const CONFIGURATION_TIMEOUT_MS = 10_000;

export const MAX_CREDENTIALS_CONNECTIONS = 64;
export const CREDENTIALS_CONNECTION_TIMEOUT_MS = 15_000;
/** For the SDK's chain to answer; beyond it the request gets 503. */
export const ROLE_CREDENTIALS_TIMEOUT_MS = 10_000;
/** A failure is answered again for so long without asking the chain. */
export const CREDENTIALS_FAILURE_LIVES_MS = 1000;
export const MAX_REQUEST_HEAD_BYTES = 8 * 1024;

export const MAX_PROXY_SCRAPERS = 16;
export const PROXY_SCRAPE_TIMEOUT_MS = 10_000;

/** When the proxy stops, a connection ends once nothing was carried for so long. */
export const DRAIN_QUIET_MS = 2000;

/** A client that has its whole answer, and was told that there is no more, may keep its connection for so long. */
export const CLIENT_LINGERS_MS = 10_000;
