// Splits work that comes in large pieces over turns of the event loop. Each turn does one piece, for any request, so
// the signer serves everything else between two pieces. No piece waits for a timer: on an idle signer the next turn
// comes at once.

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
