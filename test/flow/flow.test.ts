// Turns of callers, work one after the other, and pauses: common/flow/.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../common/flow/backoff.ts';
import { CallerLines } from '../../common/flow/caller-lines.ts';
import { oneAfterTheOther, sharedTurns } from '../../common/flow/turns.ts';

interface Item {
  readonly caller: string;
  readonly number: number;
}

describe('lines of callers', () => {
  it('give each caller its turn, and each caller its items in order', () => {
    const lines = new CallerLines<Item>();
    for (let number = 0; number < 3; number++) lines.push('one', { caller: 'one', number });
    lines.push('two', { caller: 'two', number: 3 });
    expect(drained(lines)).toEqual([0, 3, 1, 2]);
  });

  it('are what lists of each caller would be, whatever comes, leaves and goes', () => {
    const step = fc.record({
      caller: fc.constantFrom('a', 'b', 'c'),
      kind: fc.integer({ min: 0, max: 5 }),
      at: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const lines = new CallerLines<Item>();
        let model: [string, Item[]][] = [];
        const without = (item: Item | undefined): void => {
          model = model.map(([caller, items]): [string, Item[]] => [caller, items.filter((one) => one !== item)]);
          model = model.filter(([, items]) => items.length > 0);
        };
        for (const [number, { caller, kind, at }] of steps.entries()) {
          const own = model.find(([name]) => name === caller)?.[1] ?? [];
          if (kind <= 2) {
            const item = { caller, number };
            lines.push(caller, item);
            if (own.length > 0) own.push(item);
            else model.push([caller, [item]]);
          } else if (kind === 3) {
            const [first] = model;
            expect(lines.peek()).toBe(first?.[1][0]);
            expect(lines.take()).toEqual(first && { caller: first[0], item: first[1][0] });
            if (first !== undefined) model = [...model.slice(1), first];
            without(first?.[1][0]);
          } else if (kind === 4) {
            expect(lines.takeNewest(caller)).toBe(own.at(-1));
            without(own.at(-1));
          } else {
            const item = own[at % Math.max(1, own.length)];
            if (item !== undefined) lines.remove(caller, item);
            without(item);
          }
          expect(lines.size).toBe(model.reduce((sum, [, items]) => sum + items.length, 0));
          expect(lines.longest()?.size ?? 0).toBe(Math.max(0, ...model.map(([, items]) => items.length)));
          for (const name of ['a', 'b', 'c'])
            expect(lines.sizeOf(name)).toBe(model.find(([one]) => one === name)?.[1].length ?? 0);
        }
      }),
    );
  });
});

describe('work', () => {
  it('begins when the one before it has ended, also when that failed', async () => {
    const inTurn = oneAfterTheOther();
    const [first, steps] = [Promise.withResolvers<void>(), [] as string[]];
    const one = inTurn(async () => {
      steps.push('one begins');
      await first.promise;
    });
    const two = inTurn(() => Promise.resolve(steps.push('two begins')));
    await Promise.resolve();
    expect(steps).toEqual(['one begins']);
    first.reject(new Error('broken'));
    await expect(one).rejects.toThrow('broken');
    expect(await two).toBe(2);
  });

  it('is shared by those who wait for the same one, and begins after each call', async () => {
    const ends: (() => void)[] = [];
    const look = sharedTurns(() => new Promise<number>((resolve) => ends.push(() => resolve(ends.length))));
    const running = look();
    await Promise.resolve();
    const [second, third] = [look(), look()];
    expect(second).toBe(third);
    expect(second).not.toBe(running);
    ends[0]?.();
    expect(await running).toBe(1);
    await expect.poll(() => ends.length).toBe(2);
    ends[1]?.();
    expect(await second).toBe(2);
  });
});

it('pauses grow twofold up to the most, and half of them is chance', () => {
  for (const [failures, mostMs] of [
    [1, 100],
    [3, 400],
    [50, 1000],
  ] as const) {
    const pauses = Array.from({ length: 100 }, () => backoffMs(failures, { firstMs: 100, mostMs: 1000 }));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(mostMs / 2);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(mostMs);
    expect(new Set(pauses).size).toBeGreaterThan(1);
  }
});

function drained(lines: CallerLines<Item>): number[] {
  const numbers: number[] = [];
  for (let next = lines.take(); next !== undefined; next = lines.take()) numbers.push(next.item.number);
  return numbers;
}
