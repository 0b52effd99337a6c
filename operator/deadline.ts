// One timer over all that a request waits for: set again whenever something moves, stopped while the delay is ours. Its
// signal also ends the request's connection, when the time is over or the request is.

export interface Deadline {
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly expired: boolean;
  set(): void;
  stop(): void;
  end(): void;
}

export function createDeadline(seconds: number): Deadline {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let expired = false;
  const stop = (): void => clearTimeout(timer);
  const end = (): void => {
    stop();
    controller.abort();
  };
  const expire = (): void => {
    expired = true;
    end();
  };
  const set = (): void => {
    stop();
    if (!controller.signal.aborted) timer = setTimeout(expire, seconds * 1000);
  };
  return {
    seconds,
    signal: controller.signal,
    get expired() {
      return expired;
    },
    set,
    stop,
    end,
  };
}
