// How many connections of the pool are in use at once while signing goes on: what `anti_slashing.pool_size` can be
// about.

/** Larger batches cost latency, more of them at once contend for the same disk. */
export const BATCHES_IN_FLIGHT = 2;
/**
 * A health check, a step of pruning, a look at the store's record, a raise of it, a change of retired keys: one of
 * each, and seldom.
 */
const BESIDE_BATCHES = 5;
/** Imports, exports and migrations have connections of their own. */
export const USED_POOL_CONNECTIONS = BATCHES_IN_FLIGHT + BESIDE_BATCHES;
