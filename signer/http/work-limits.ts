// How many requests of a route that does long work run at once, and how long a client waits.

import { SignerError, tellingUnlessTold } from '../api/errors.ts';

export interface WorkLimits {
  readonly maxConcurrentRequests: number;
  readonly requestTimeoutSeconds: number;
}

export interface ItemLimits extends WorkLimits {
  readonly maxItemsPerRequest: number;
}

const PART_MAY_BE_DONE = 'a part of it may be done, and what is under way goes on: list the keys before you repeat it';

const MAY_BE_REPEATED = 'repeat the request: what is done of it already stays so';

/** @throws SignerError `overloaded`, `request_timeout`, and what the work throws */
type LimitedWork = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export function limitWork({ maxConcurrentRequests, requestTimeoutSeconds }: WorkLimits): LimitedWork {
  let running = 0;
  return async (work) => {
    if (running >= maxConcurrentRequests) throw new SignerError('overloaded');
    running += 1;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const error = new SignerError('request_timeout', { hint: PART_MAY_BE_DONE });
      controller.abort(error);
      reject(error);
    }, requestTimeoutSeconds * 1000);
    return Promise.race([untilItEnds(controller.signal), late]);

    // Work that is not answered any more still holds its place. Awaited, so that work that throws gives its place back.
    async function untilItEnds(signal: AbortSignal): ReturnType<typeof work> {
      try {
        return await work(signal);
      } catch (error) {
        return tellingUnlessTold(MAY_BE_REPEATED)(error);
      } finally {
        running -= 1;
        clearTimeout(timer);
      }
    }
  };
}

/** @throws SignerError `too_many_items` */
export function assertItems(count: number, { maxItemsPerRequest }: Pick<ItemLimits, 'maxItemsPerRequest'>): void {
  if (count <= maxItemsPerRequest) return;
  throw new SignerError('too_many_items', { hint: `at most ${maxItemsPerRequest}` });
}
