// Limits that the configuration promises and the server keeps.

/** Memory of request bodies at most, over all connections. No single body may be allowed to be larger. */
export const BODY_BUDGET_BYTES = 256 * 1024 * 1024;
