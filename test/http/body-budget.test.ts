// Memory for request bodies: what is held is reserved, one body of any allowed size has room, and all together never
// hold more.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BODY_BUDGET_BYTES } from '../../signer/api/primitives.ts';
import type { Caller } from '../../signer/auth/authenticator.ts';
import { OPTIONS } from '../../signer/config/options.ts';
import { createBodyBudget } from '../../signer/http/body-budget.ts';

const MIB = 1024 * 1024;

function holder(accessor: string) {
  return { bodyReservation: 0, bodyHolder: undefined, caller: { accessor } as Caller };
}

describe('the budget of request bodies', () => {
  it('is the most that the option for one body may be', () => {
    const { schema } = OPTIONS['server.max_request_body_bytes'].kind;
    expect(schema.safeParse(BODY_BUDGET_BYTES).success).toBe(true);
    expect(schema.safeParse(BODY_BUDGET_BYTES + 1).success).toBe(false);
  });

  it.each([1, 64, 65, 100, 256])('has room for one body of %i MiB, where that is allowed', (mebibytes) => {
    const budget = createBodyBudget(mebibytes * MIB);
    const one = holder('a');
    for (let bytes = 60_000; bytes < mebibytes * MIB; bytes += 60_000) {
      if (bytes > one.bodyReservation) expect(budget.grow(one, bytes)).toBeGreaterThanOrEqual(bytes);
    }
    expect(budget.grow(one, mebibytes * MIB)).toBe(mebibytes * MIB);
  });

  it('reserves the first bytes as they are, and then twice as much, up to the largest body', () => {
    const budget = createBodyBudget(1000);
    const one = holder('a');
    expect([100, 101, 350, 500].map((bytes) => budget.grow(one, bytes))).toEqual([100, 200, 400, 800]);
    expect(budget.grow(one, 801)).toBe(1000);
  });

  it('gives what is just needed where there is not twice as much', () => {
    const budget = createBodyBudget(BODY_BUDGET_BYTES);
    const [one, other] = [holder('a'), holder('b')];
    budget.grow(other, BODY_BUDGET_BYTES - 150);
    budget.grow(one, 100);
    expect(budget.grow(one, 120)).toBe(120);
    expect(budget.grow(one, 151)).toBe(0);
    budget.shrink(other, 0);
    expect(budget.grow(one, 151)).toBe(240);
  });

  it('leaves three quarters to others when one token floods', () => {
    const budget = createBodyBudget(2 * MIB);
    const bodies = Array.from({ length: 33 }, () => holder('flood'));
    expect(bodies.filter((body) => budget.grow(body, 2 * MIB) > 0)).toHaveLength(32);
    expect(budget.grow(holder('another'), 2 * MIB)).toBe(2 * MIB);
  });

  it('gets a body back from whoever it was counted for, also when a reload has renamed the token meanwhile', () => {
    const budget = createBodyBudget(BODY_BUDGET_BYTES / 4);
    const [before, after, again] = [holder('static:0'), holder('static:ops'), holder('static:0')];
    expect(budget.grow(before, 60 * MIB)).toBe(60 * MIB);
    before.caller = { accessor: 'static:ops' } as Caller;
    budget.shrink(before, 0);
    expect(budget.grow(again, 64 * MIB)).toBe(64 * MIB);
    expect(budget.grow(after, 60 * MIB)).toBe(60 * MIB);
    expect(budget.grow(holder('static:ops'), 60 * MIB)).toBe(0);
  });

  it('never holds more than it has, whatever comes and goes, and gets everything back', () => {
    const step = fc.record({ body: fc.nat(7), bytes: fc.nat(BODY_BUDGET_BYTES), ends: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const budget = createBodyBudget(BODY_BUDGET_BYTES);
        const bodies = Array.from({ length: 8 }, (_, index) => holder(`token ${index % 3}`));
        for (const { body, bytes, ends } of steps) {
          const one = bodies[body] ?? holder('none');
          if (ends) budget.shrink(one, 0);
          else if (bytes > one.bodyReservation)
            expect(budget.grow(one, bytes)).toBe(one.bodyReservation >= bytes ? one.bodyReservation : 0);
          const held = bodies.reduce((sum, { bodyReservation }) => sum + bodyReservation, 0);
          expect(held).toBeLessThanOrEqual(BODY_BUDGET_BYTES);
        }
        for (const one of bodies) budget.shrink(one, 0);
        expect(budget.grow(holder('last'), BODY_BUDGET_BYTES)).toBe(BODY_BUDGET_BYTES);
      }),
    );
  });
});
