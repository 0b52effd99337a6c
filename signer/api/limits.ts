// Limits that the configuration promises and the server keeps.

/** Memory of request bodies at most, over all connections. No single body may be allowed to be larger. */
export const BODY_BUDGET_BYTES = 256 * 1024 * 1024;

/** The gossip limit (specification/signing.md#gloas), also where max_request_body_bytes is smaller. */
export const MAX_ENVELOPE_BODY_BYTES = 10 * 1024 * 1024;

export const MAX_SEAL_REASON_CHARACTERS = 512;
