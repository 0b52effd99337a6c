// Work that is done one after the other.

/** Each work begins when the one before it has ended, well or not. */
export function oneAfterTheOther(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}

/** Work that begins after the call, and after that of earlier calls; callers that wait for the same one share it. */
export function sharedTurns<Result>(work: () => Promise<Result>, inTurn = oneAfterTheOther()): () => Promise<Result> {
  let next: Promise<Result> | undefined;
  return () => {
    next ??= inTurn(() => {
      next = undefined;
      return work();
    });
    return next;
  };
}
