// Limits that no operator has a reason to change; the others are options (`parent_proxy.limits`). All of them are in
// docs/reference/parent-proxy.md.

/**
 * One at a time is what an enclave needs; more are there while it restarts. The newest takes the oldest one's place.
 */
export const MAX_LOG_CONNECTIONS = 4;
/** The rest of a longer line is dropped, and the line says so. The enclave sends no longer ones. */
export const MAX_LOG_LINE_BYTES = 64 * 1024;
/**
 * Bytes of a line as it is written, escapes included; a longer one is cut, and says so. journald breaks lines at 48 KiB
 * (journald.conf(5), LineMax), and what is behind the break would stand there as a line of the proxy's own.
 */
export const MAX_WRITTEN_LOG_LINE_BYTES = 47 * 1024;

export const MAX_CONFIGURATION_CONNECTIONS = 16;
/** To take the configuration, from the accept to the end. */
export const CONFIGURATION_TIMEOUT_MS = 10_000;

export const MAX_CREDENTIALS_CONNECTIONS = 64;
/** For one request, from the accept to the end of the answer. */
export const CREDENTIALS_CONNECTION_TIMEOUT_MS = 15_000;
/** For the SDK's chain to answer; beyond it the request gets 503. */
export const CREDENTIALS_TIMEOUT_MS = 10_000;
/** A failure is answered again for so long without asking the chain. */
export const CREDENTIALS_FAILURE_LIVES_MS = 1000;
export const MAX_REQUEST_HEAD_BYTES = 8 * 1024;

export const MAX_SCRAPERS = 16;
export const SCRAPE_TIMEOUT_MS = 10_000;

/** When the proxy stops, a connection ends once nothing was carried for so long. */
export const DRAIN_QUIET_MS = 2000;

/**
 * A client that has its whole answer, and was told that there is no more, may keep its connection for so long in
 * silence.
 */
export const CLIENT_LINGERS_MS = 10_000;
