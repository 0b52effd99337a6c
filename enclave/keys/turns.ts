// Lets one change of a key end before the next of the same key begins: an import, a deletion or a new status. Without
// it an import whose row is durable already would load the key after a deletion of that row was answered. It orders
// requests of this process only.

/** Runs the work when every earlier turn of any of these keys has ended; turns of other keys go on beside it. */
export type KeyTurns = <T>(publicKeys: readonly string[], work: () => Promise<T>) => Promise<T>;

export function keyTurns(): KeyTurns {
  /** The end of each key's last turn; never rejects. */
  const lastTurns = new Map<string, Promise<void>>();
  return async (publicKeys, work) => {
    // All places are taken at once, so no two turns wait for each other.
    const earlier = publicKeys.flatMap((publicKey) => lastTurns.get(publicKey) ?? []);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    for (const publicKey of publicKeys) lastTurns.set(publicKey, ended);
    try {
      await Promise.all(earlier);
      return await work();
    } finally {
      resolve();
      for (const publicKey of publicKeys) if (lastTurns.get(publicKey) === ended) lastTurns.delete(publicKey);
    }
  };
}
