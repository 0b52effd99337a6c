// One change of a key ends before the next begins: an import could load a key after the deletion of its row was
// answered.

export type KeyTurns = <T>(publicKeys: readonly string[], work: () => Promise<T>) => Promise<T>;

export function keyTurns(): KeyTurns {
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
