import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SignerError } from '../../enclave/api/errors.ts';
import { createPermits } from '../../enclave/signing/permits.ts';

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
