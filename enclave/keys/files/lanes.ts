// Works through a list with a bounded number of items at once.

/** Every item, `limit` at once. The first throw stops the others and is thrown when they have stopped. */
export async function forEach<T>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal | undefined,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    try {
      for (let item = items[next++]; item !== undefined; item = items[next++]) {
        signal?.throwIfAborted();
        await work(item);
      }
    } finally {
      // Reached by whoever comes to the end first, or by a throw.
      next = items.length;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, lane));
  for (const lane of ended) if (lane.status === 'rejected') throw lane.reason;
}
