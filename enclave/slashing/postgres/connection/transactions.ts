// How transactions begin, and the advisory locks that all signers of a database agree on. The key of such a lock is any
// 64-bit number that nobody else uses; ours are eight letters in ASCII.

/** Whatever the database or the role is set to: a commit of ours is on disk when it is answered. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on';

/** "strongro": held while the schema is brought up to date. */
export const MIGRATION_LOCK = 0x7374_726f_6e67_726fn;

/** "strongim": held by an import from its first locked row to its commit. */
export const IMPORT_LOCK = 0x7374_726f_6e67_696dn;

/**
 * "strongju": shared by every batch; a jump has it alone, so it waits for those that began and is seen by all later.
 */
const JUMP_LOCK = 0x7374_726f_6e67_6a75n;

/** A statement of its own before those that read: each sees what was committed before it began. */
export const BEGIN_BATCH = `${BEGIN}; SELECT pg_advisory_xact_lock_shared(${JUMP_LOCK})`;

export const BEGIN_JUMP = `${BEGIN}; SELECT pg_advisory_xact_lock(${JUMP_LOCK})`;
