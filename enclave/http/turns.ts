// Turns of the event loop for work that comes in large pieces: one piece a turn, whoever it is for, so that between two
// of them everything else is served. Nothing waits for a timer: on a signer that does nothing else the next turn comes
// at once.

export interface Turns {
  /** Resolves when it is the caller's turn; pieces that ask in the same turn get one after the other, in order. */
  next(): Promise<void>;
}

export function turnsOfEventLoop(): Turns {
  const waiting: (() => void)[] = [];
  const giveNext = (): void => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(giveNext);
  };
  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 1) setImmediate(giveNext);
      }),
  };
}
