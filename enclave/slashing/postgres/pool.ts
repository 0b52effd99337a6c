// How many connections of the pool are ever in use at once: what `anti_slashing.pool_size` can be about.

/** Larger batches cost latency, more of them at once contend for the same disk. */
export const BATCHES_IN_FLIGHT = 2;
/** A health check, and a step of pruning. Imports, exports and migrations have connections of their own. */
const BESIDE_BATCHES = 2;
export const USED_POOL_CONNECTIONS = BATCHES_IN_FLIGHT + BESIDE_BATCHES;
