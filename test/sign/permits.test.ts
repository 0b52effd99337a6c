import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import { createPermits } from '../../signer/sign/permits.ts';

const never = new AbortController().signal;

function reasonOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error instanceof SignerError ? error.reason : 'another error';
  }
}

describe('permits', () => {
  it('a free permit is given without waiting', () => {
    const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 });
    expect(permits.acquire('normal', never)).toBeUndefined();
    expect(permits.load('normal')).toEqual({ inFlight: 1, queued: 0 });
  });

  it('a full queue refuses at once with overloaded', () => {
    const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 });
    permits.acquire('normal', never);
    void permits.acquire('normal', never);
    expect(reasonOf(() => permits.acquire('normal', never))).toBe('overloaded');
  });

  it('waiters are admitted in the order they came', async () => {
    const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 10, priorityJobs: 0 });
    permits.acquire('normal', never);
    const order: number[] = [];
    const waiters = [1, 2, 3].map((n) => permits.acquire('normal', never)?.then(() => order.push(n)));
    for (const waiter of waiters) {
      permits.release('normal');
      await waiter;
    }
    expect(order).toEqual([1, 2, 3]);
  });

  it('a waiter that goes away frees its place and never holds a permit', async () => {
    const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 });
    permits.acquire('normal', never);
    const gone = new AbortController();
    const waiting = permits.acquire('normal', gone.signal);
    gone.abort(new Error('the client closed'));
    await expect(waiting).rejects.toThrow('the client closed');
    expect(permits.load('normal').queued).toBe(0);
    permits.release('normal');
    expect(permits.load('normal').inFlight).toBe(0);
  });

  it('the priority pool is carved out of the total and does not wait behind normal work', () => {
    const permits = createPermits({ maxConcurrentJobs: 3, queueLimit: 0, priorityJobs: 1 });
    permits.acquire('normal', never);
    permits.acquire('normal', never);
    expect(reasonOf(() => permits.acquire('normal', never))).toBe('overloaded');
    expect(permits.acquire('priority', never)).toBeUndefined();
    expect(reasonOf(() => permits.acquire('priority', never))).toBe('overloaded');
  });

  it('one queue is behind both pools', () => {
    const permits = createPermits({ maxConcurrentJobs: 2, queueLimit: 2, priorityJobs: 1 });
    for (const lane of ['normal', 'priority'] as const) {
      permits.acquire(lane, never);
      void permits.acquire(lane, never);
    }
    expect([permits.load('normal').queued, permits.load('priority').queued]).toEqual([1, 1]);
    for (const lane of ['normal', 'priority'] as const) {
      expect(reasonOf(() => permits.acquire(lane, never))).toBe('overloaded');
    }
    permits.release('normal');
    expect(permits.acquire('priority', never)).toBeInstanceOf(Promise);
  });

  describe('of several callers', () => {
    const options = { maxConcurrentJobs: 1, queueLimit: 6, priorityJobs: 0 };
    /** Each notes its name when it gets its permit, and what refused it. */
    const queue = (permits: ReturnType<typeof createPermits>, caller: string, count: number, order: string[]) => {
      for (let n = 1; n <= count; n += 1) {
        permits.acquire('normal', never, caller)?.then(
          () => order.push(`${caller} ${n}`),
          (error: SignerError) => order.push(`${caller} ${n} ${error.reason}`),
        );
      }
    };
    const releaseAll = async (permits: ReturnType<typeof createPermits>, count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) {
        permits.release('normal');
        await new Promise(setImmediate);
      }
    };

    it('are given by turns, and in order to each: who asks once does not wait behind who asks often', async () => {
      const permits = createPermits(options);
      permits.acquire('normal', never, 'flood');
      const order: string[] = [];
      queue(permits, 'flood', 4, order);
      queue(permits, 'other', 2, order);
      await releaseAll(permits, 6);
      expect(order).toEqual(['flood 1', 'other 1', 'flood 2', 'other 2', 'flood 3', 'flood 4']);
    });

    it('one alone has every permit and every place', async () => {
      const permits = createPermits(options);
      permits.acquire('normal', never, 'alone');
      const order: string[] = [];
      queue(permits, 'alone', 6, order);
      expect(permits.load('normal')).toEqual({ inFlight: 1, queued: 6 });
      expect(reasonOf(() => permits.acquire('normal', never, 'alone'))).toBe('overloaded');
      await releaseAll(permits, 6);
      expect(order).toEqual([1, 2, 3, 4, 5, 6].map((n) => `alone ${n}`));
    });

    it('who has most places of a full queue loses its newest to who has fewer, until both have as many', async () => {
      const permits = createPermits(options);
      permits.acquire('normal', never, 'flood');
      const order: string[] = [];
      queue(permits, 'flood', 6, order);
      queue(permits, 'other', 3, order);
      expect(reasonOf(() => permits.acquire('normal', never, 'other'))).toBe('overloaded');
      expect(reasonOf(() => permits.acquire('normal', never, 'flood'))).toBe('overloaded');
      await new Promise(setImmediate);
      expect(order).toEqual(['flood 6 overloaded', 'flood 5 overloaded', 'flood 4 overloaded']);
      expect(permits.load('normal').queued).toBe(6);
    });

    it('a request that lost its place does not hold a permit later', async () => {
      const permits = createPermits({ ...options, queueLimit: 2 });
      permits.acquire('normal', never, 'flood');
      const order: string[] = [];
      queue(permits, 'flood', 2, order);
      queue(permits, 'other', 1, order);
      await releaseAll(permits, 3);
      expect(order).toEqual(['flood 2 overloaded', 'flood 1', 'other 1']);
      expect(permits.load('normal')).toEqual({ inFlight: 0, queued: 0 });
    });
  });

  describe('of a group', () => {
    const options = { maxConcurrentJobs: 8, queueLimit: 20, priorityJobs: 0 };

    it('are as many as its keys, up to half of the pool: a share stays for single requests', async () => {
      const permits = createPermits(options);
      const small = permits.enter('normal', 3);
      expect(await small.take(100, never)).toBe(3);
      small.release(3);
      const large = permits.enter('normal', 20);
      expect(await large.take(100, never)).toBe(4);
      expect(permits.load('normal')).toEqual({ inFlight: 4, queued: 16 });
      for (let alone = 0; alone < 4; alone++) expect(permits.acquire('normal', never)).toBeUndefined();
    });

    it('are a third of the pool for each of two, and what one gives back the other may have', async () => {
      const permits = createPermits({ ...options, maxConcurrentJobs: 9 });
      const [one, other] = [permits.enter('normal', 10), permits.enter('normal', 10)];
      expect(await one.take(100, never)).toBe(3);
      expect(await other.take(100, never)).toBe(3);
      const more = other.take(100, never);
      one.leave();
      one.release(3);
      expect(await more).toBe(1); // half of nine, and it holds three
      expect(permits.load('normal')).toEqual({ inFlight: 4, queued: 6 });
    });

    it('leave a share to single requests, also when groups come one after the other', async () => {
      const permits = createPermits({ maxConcurrentJobs: 12, queueLimit: 100, priorityJobs: 0 });
      const first = permits.enter('normal', 10);
      expect(await first.take(100, never)).toBe(6);
      expect(await permits.enter('normal', 10).take(100, never)).toBe(2); // of its share of four
      expect(await permits.enter('normal', 10).take(100, never)).toBe(1);
      const last = permits.enter('normal', 10).take(100, never); // may have one, as four groups leave a share of two
      expect(await last).toBe(1);
      for (let alone = 0; alone < 2; alone++) expect(permits.acquire('normal', never)).toBeUndefined();
      expect(permits.load('normal').inFlight).toBe(12);
    });

    it('are one at least, however small the pool is', async () => {
      const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 5, priorityJobs: 0 });
      const group = permits.enter('normal', 2);
      expect(await group.take(100, never)).toBe(1);
      const second = group.take(100, never);
      group.release(1);
      expect(await second).toBe(1);
    });

    it('need a place in the queue for each key, and leave nothing taken when there are too few', async () => {
      const permits = createPermits(options);
      expect(reasonOf(() => permits.enter('normal', 21))).toBe('overloaded');
      expect(permits.load('normal')).toEqual({ inFlight: 0, queued: 0 });
      const first = permits.enter('normal', 20);
      expect(reasonOf(() => permits.enter('normal', 1))).toBe('overloaded');
      first.leave();
      permits.enter('normal', 20);
    });

    it('and those that wait alone take turns', async () => {
      const permits = createPermits({ maxConcurrentJobs: 2, queueLimit: 20, priorityJobs: 0 });
      permits.acquire('normal', never);
      permits.acquire('normal', never);
      const order: string[] = [];
      const group = permits.enter('normal', 3);
      const takeAll = async (): Promise<void> => {
        for (let key = 0; key < 3; key++) {
          await group.take(1, never);
          order.push('group');
          group.release(1);
        }
      };
      const alone = [1, 2, 3].map(async (n) => {
        await permits.acquire('normal', never);
        order.push(`alone ${n}`);
        permits.release('normal');
      });
      const grouped = takeAll();
      permits.release('normal');
      await Promise.all([...alone, grouped]);
      expect(order.indexOf('group')).toBeLessThan(order.indexOf('alone 3'));
      expect(order.indexOf('alone 1')).toBe(0);
    });

    it('are not waited for any more by one that is given up', async () => {
      const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 20, priorityJobs: 0 });
      permits.acquire('normal', never);
      const gone = new AbortController();
      const group = permits.enter('normal', 3);
      const waiting = group.take(2, gone.signal);
      gone.abort(new Error('the client closed'));
      await expect(waiting).rejects.toThrow('the client closed');
      group.leave();
      permits.release('normal');
      expect(permits.load('normal')).toEqual({ inFlight: 0, queued: 0 });
    });

    it('are neither lost nor invented by any number of groups and others', async () => {
      const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 });
      const pool = fc.integer({ min: 1, max: 10 });
      await fc.assert(
        fc.asyncProperty(sizes, pool, fc.integer({ min: 1, max: 5 }), async (groups, maxConcurrentJobs, most) => {
          const permits = createPermits({ maxConcurrentJobs, queueLimit: 1000, priorityJobs: 0 });
          let held = 0;
          const hold = async (count: number): Promise<void> => {
            held += count;
            expect(held).toBeLessThanOrEqual(maxConcurrentJobs);
            await new Promise((resolve) => setImmediate(resolve));
            held -= count;
          };
          const runGroup = async (keys: number): Promise<void> => {
            const group = permits.enter('normal', keys);
            for (let left = keys; left > 0; ) {
              const count = await group.take(most, never);
              expect(count).toBeLessThanOrEqual(Math.min(most, left));
              left -= count;
              await hold(count);
              group.release(count);
            }
          };
          const runAlone = async (): Promise<void> => {
            await permits.acquire('normal', never);
            await hold(1);
            permits.release('normal');
          };
          await Promise.all(groups.flatMap((keys) => [runGroup(keys), runAlone(), runAlone()]));
          expect(permits.load('normal')).toEqual({ inFlight: 0, queued: 0 });
        }),
        { numRuns: 100 },
      );
    });
  });

  it('no sequence of acquire, abort and release leaks or invents a permit', async () => {
    const steps = fc.array(fc.constantFrom('acquire', 'abort', 'release'), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const permits = createPermits({ maxConcurrentJobs: 2, queueLimit: 3, priorityJobs: 0 });
        let held = 0;
        const waiting: AbortController[] = [];
        for (const step of sequence) {
          if (step === 'acquire') {
            const controller = new AbortController();
            try {
              const wait = permits.acquire('normal', controller.signal);
              if (wait === undefined) held += 1;
              else {
                waiting.push(controller);
                wait.then(
                  () => {
                    held += 1;
                    waiting.splice(waiting.indexOf(controller), 1);
                  },
                  () => undefined,
                );
              }
            } catch (error) {
              expect(error).toBeInstanceOf(SignerError);
            }
          } else if (step === 'abort') {
            waiting.shift()?.abort();
          } else if (held > 0) {
            held -= 1;
            permits.release('normal');
          }
          await new Promise<void>((resolve) => setImmediate(resolve));
          expect(permits.load('normal')).toEqual({ inFlight: held, queued: waiting.length });
          expect(held).toBeLessThanOrEqual(2);
        }
      }),
      { numRuns: 50 },
    );
  });
});
