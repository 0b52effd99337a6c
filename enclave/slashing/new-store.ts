// What every backend says of a store that it has just made.

export const NEW_STORE = 'a new slashing database: it knows nothing of what the keys signed before';
