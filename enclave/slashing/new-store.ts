// What every backend gives a store that it makes, and says of it.

/** Random; StoreIdentity has it as 32 hex digits. */
export const STORE_ID_BYTES = 16;

export const NEW_STORE = 'a new slashing database: it knows nothing of what the keys signed before';
