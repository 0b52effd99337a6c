// Knows which keys are signing now. Whoever takes a key out of service first removes it from the store, so that no
// request finds it any more. Then they wait here until every signature under way with it is handed over or given up.
// Only after that is the slashing history of the key final.

export interface InFlightSigning {
  /** In the same turn in which the key was found, so that no removal falls between the two. */
  begin(publicKey: string): void;
  /** Once for each begin: the signature is made and its record durable, or there will be none. */
  end(publicKey: string): void;
  /** Resolves when none of the keys is signing. It terminates, because a removed key cannot start new work. */
  drain(publicKeys: readonly string[]): Promise<void>;
}

export function inFlightSigning(): InFlightSigning {
  const counts = new Map<string, number>();
  const waiting = new Map<string, PromiseWithResolvers<void>>();

  return {
    begin: (publicKey) => void counts.set(publicKey, (counts.get(publicKey) ?? 0) + 1),
    end(publicKey) {
      const left = (counts.get(publicKey) ?? 0) - 1;
      if (left > 0) {
        counts.set(publicKey, left);
        return;
      }
      counts.delete(publicKey);
      if (waiting.size === 0) return;
      waiting.get(publicKey)?.resolve();
      waiting.delete(publicKey);
    },
    async drain(publicKeys) {
      for (const publicKey of publicKeys) {
        if (!counts.has(publicKey)) continue;
        const ended = waiting.get(publicKey) ?? Promise.withResolvers<void>();
        waiting.set(publicKey, ended);
        await ended.promise;
      }
    },
  };
}
