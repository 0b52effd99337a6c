// Whoever can write the state table and has no key, as a property: over random honest histories and whatever mixture of
// rows and heads that ever were (whole, altered, moved, left out) the attacker shows, no decision is ever wider than an
// honest state allows: the latest one for a replica that has the latest head, and none older than what a running
// replica has seen.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Rule } from '../../signer/api/policy.ts';
import { evaluate } from '../../signer/auth/evaluate.ts';
import { loadAuth } from '../../signer/auth/stateful/load.ts';
import { pkOf, policyFields, type TokenContent, tokenFields } from '../../signer/auth/stateful/rows.ts';
import { type AuthSnapshot, isExpired } from '../../signer/auth/stateful/snapshot.ts';
import type { AuthHead, AuthRow, AuthState } from '../../signer/auth/stateful/state.ts';
import { prepare } from '../../signer/auth/stateful/write.ts';
import { createToken } from '../../signer/auth/tokens.ts';
import { replaceRootToken } from '../../signer/boot/custody.ts';
import { START, testKeys } from '../support/stateful-auth.ts';

const KEYS = testKeys();
const NAMES = ['a', 'b', 'c'];
const ACCESSORS = ['1', '2', '3'].map((digit) => `acc_${digit.repeat(32)}`);
const REQUESTS = [
  { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'ATTESTATION' },
  { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'VOLUNTARY_EXIT' },
  { scope: 'list_keys' },
  { scope: 'chamber_seal' },
] as const;
const AT = new Date(START).toISOString();

type Step =
  | { readonly kind: 'policy'; readonly name: string; readonly rules: readonly Rule[] }
  | {
      readonly kind: 'token';
      readonly accessor: string;
      readonly content: Pick<TokenContent, 'kind' | 'policies' | 'boundCidrs' | 'expiresAt'>;
    }
  | { readonly kind: 'delete'; readonly pk: string };

const rule: fc.Arbitrary<Rule> = fc.record(
  {
    effect: fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const),
    scopes: fc.uniqueArray(fc.constantFrom('sign' as const, 'list_keys' as const, 'chamber_seal' as const), {
      minLength: 1,
    }),
    operations: fc.constantFrom<Rule['operations'] & object>(['ATTESTATION'], ['VOLUNTARY_EXIT']),
  },
  { requiredKeys: ['effect'] },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('policy' as const),
    name: fc.constantFrom(...NAMES),
    rules: fc.array(rule, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({
    kind: fc.constant('token' as const),
    accessor: fc.constantFrom(...ACCESSORS),
    content: fc.record({
      kind: fc.constantFrom('client' as const, 'client' as const, 'management' as const),
      policies: fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 2 }),
      boundCidrs: fc.constantFrom([], ['10.0.0.0/8']),
      expiresAt: fc.constantFrom(null, new Date(START - 1).toISOString()),
    }),
  }),
  fc.record({
    kind: fc.constant('delete' as const),
    pk: fc.constantFrom(...NAMES.map((name) => pkOf('policy', name)), ...ACCESSORS.map((name) => pkOf('token', name))),
  }),
);

/** What every moment of the honest history looked like, and all that was ever written. */
interface History {
  readonly states: readonly AuthSnapshot[];
  readonly heads: readonly AuthHead[];
  readonly rows: readonly AuthRow[];
}

async function historyOf(steps: readonly Step[]): Promise<History> {
  const first = replaceRootToken(KEYS, undefined, createToken('management'), START);
  const rows = first.changes.flatMap((change) => ('put' in change ? [change.put] : []));
  const start = await shown(first.head, rows);
  if (start === undefined) throw new Error('an honest table is loaded');
  const [states, heads] = [[start], [first.head]];
  for (const next of steps) {
    const state = states.at(-1) as AuthSnapshot;
    const change = changeOf(next);
    if (change.deletes.some((pk) => !state.manifest.rows.has(pk))) continue;
    const { write, next: after } = prepare(KEYS.rows, state, change);
    states.push(after);
    heads.push(write.head);
    rows.push(...write.changes.flatMap((written) => ('put' in written ? [written.put] : [])));
  }
  return { states, heads, rows };
}

function changeOf(next: Step): Parameters<typeof prepare>[2] {
  switch (next.kind) {
    case 'policy': {
      const fields = policyFields({ createdAt: AT, updatedAt: AT, rules: next.rules });
      return { puts: [{ pk: pkOf('policy', next.name), fields }], deletes: [] };
    }
    case 'token': {
      const digest = next.accessor.slice(4, 5).repeat(64);
      const fields = tokenFields({ ...next.content, digest, description: null, createdAt: AT, ttlSeconds: null });
      return { puts: [{ pk: pkOf('token', next.accessor), fields }], deletes: [] };
    }
    case 'delete':
      return { puts: [], deletes: [next.pk] };
    default:
      throw new Error('not a step');
  }
}

interface Shown {
  readonly index: number;
  readonly how: 'whole' | 'whole' | 'content' | 'revision' | 'mac' | 'moved';
  readonly other: number;
}

const attack = fc.record({
  head: fc.nat(),
  headHow: fc.constantFrom('whole' as const, 'whole' as const, 'manifest' as const, 'revision' as const),
  rows: fc.array(
    fc.record({
      index: fc.nat(),
      how: fc.constantFrom<Shown['how']>('whole', 'whole', 'whole', 'content', 'revision', 'mac', 'moved'),
      other: fc.nat(),
    }),
    { maxLength: 12 },
  ),
});

function shownRows(history: History, shown: readonly Shown[]): AuthRow[] {
  const byPk = new Map<string, AuthRow>();
  for (const { index, how, other } of shown) {
    const row = at(history.rows, index);
    const second = at(history.rows, other);
    const forged: Record<Shown['how'], AuthRow> = {
      whole: row,
      content: { ...row, content: second.content },
      revision: { ...row, revision: second.revision },
      mac: { ...row, mac: second.mac },
      moved: { ...row, pk: second.pk },
    };
    byPk.set(forged[how].pk, forged[how]);
  }
  return [...byPk.values()];
}

function shownHead(
  history: History,
  { head, headHow, rows }: { head: number; headHow: string; rows: readonly Shown[] },
) {
  const whole = at(history.heads, head);
  const other = at(history.heads, rows[0]?.index ?? 0);
  if (headHow === 'manifest') return { ...whole, manifest: other.manifest };
  return headHow === 'revision' ? { ...whole, revision: whole.revision + 1 + ((rows[0]?.index ?? 0) % 5) } : whole;
}

function at<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item;
}

/** What a replica has after looking at this table; what it had before when it does not believe the table. */
async function shown(
  head: AuthHead,
  rows: readonly AuthRow[],
  current?: AuthSnapshot,
  trustsHeld = false,
): Promise<AuthSnapshot | undefined> {
  const state: AuthState = {
    readRows: async (pks) => rows.filter(({ pk }) => pks.includes(pk)),
    readTogether: async (pks) => ({ head, rows: rows.filter(({ pk }) => pks.includes(pk)) }),
    commit: async () => 'conflict',
  };
  try {
    return (await loadAuth(KEYS.rows, state, current, trustsHeld))?.snapshot ?? current;
  } catch {
    return current;
  }
}

/** Everything that any token may do, as texts; a token that is refused may do nothing. */
function powersOf(snapshot: AuthSnapshot | undefined): ReadonlySet<string> {
  const powers = new Set<string>();
  for (const [digest, { caller, token }] of snapshot?.callers ?? []) {
    if (isExpired(token, START)) continue;
    for (const from of token.cidrs.length === 0 ? ['inside', 'outside'] : ['inside']) {
      powers.add(`${digest} ${from} enters`);
      if (caller.management) powers.add(`${digest} ${from} administers`);
      for (const [index, request] of REQUESTS.entries()) {
        if (evaluate(caller.access, request).allowed) powers.add(`${digest} ${from} ${index}`);
      }
    }
  }
  return powers;
}

const histories = fc.array(step, { minLength: 4, maxLength: 14 });

it('a replica that starts with the latest head allows nothing that the latest honest state does not', async () => {
  let narrowed = 0;
  let unharmed = 0;
  await fc.assert(
    fc.asyncProperty(histories, attack, async (steps, { rows }) => {
      const history = await historyOf(steps);
      const honest = powersOf(history.states.at(-1));
      const seen = powersOf(await shown(history.heads.at(-1) as AuthHead, shownRows(history, rows)));
      expect([...seen].filter((power) => !honest.has(power))).toEqual([]);
      if (seen.size < honest.size) narrowed += 1;
      else unharmed += 1;
    }),
    { numRuns: 1500 },
  );
  expect(Math.min(narrowed, unharmed)).toBeGreaterThan(20);
});

it('with every row as it was written, the attacker’s others change nothing', async () => {
  await fc.assert(
    fc.asyncProperty(histories, attack, async (steps, { rows }) => {
      const history = await historyOf(steps);
      const latest = history.states.at(-1) as AuthSnapshot;
      const current = history.rows.filter(({ pk, revision }) => latest.rows.get(pk)?.revision === revision);
      const others = shownRows(history, rows).filter(({ pk }) => !latest.manifest.rows.has(pk));
      const seen = await shown(history.heads.at(-1) as AuthHead, [...current, ...others]);
      expect([...powersOf(seen)].toSorted()).toEqual([...powersOf(latest)].toSorted());
    }),
    { numRuns: 500 },
  );
});

it('a running replica that has seen the latest state keeps to its head, and allows what one does that starts', async () => {
  let narrowed = 0;
  await fc.assert(
    fc.asyncProperty(histories, attack, fc.boolean(), async (steps, shownNow, trustsHeld) => {
      const history = await historyOf(steps);
      const latest = history.states.at(-1) as AuthSnapshot;
      const [head, rows] = [shownHead(history, shownNow), shownRows(history, shownNow.rows)];
      const seen = await shown(head, rows, latest, trustsHeld);
      expect([seen?.revision, seen?.mac]).toEqual([latest.revision, latest.mac]);
      if (seen === latest) return;
      // The rows are read again for the same head alone.
      expect(trustsHeld).toBe(false);
      const started = await shown(head, rows);
      if (started !== undefined) expect(powersOf(seen)).toEqual(powersOf(started)); // it may refuse the head's manifest
      if (powersOf(seen).size < powersOf(latest).size) narrowed += 1;
    }),
    { numRuns: 1000 },
  );
  expect(narrowed).toBeGreaterThan(10);
});

it('a running replica is never led to a state older than what it has seen', async () => {
  let moved = 0;
  await fc.assert(
    fc.asyncProperty(histories, attack, fc.nat(), fc.boolean(), async (steps, shownNow, seenIndex, trustsHeld) => {
      const history = await historyOf(steps);
      const before = at(history.states, seenIndex);
      const [head, rows] = [shownHead(history, shownNow), shownRows(history, shownNow.rows)];
      const after = await shown(head, rows, before, trustsHeld);
      expect(after?.revision).toBeGreaterThanOrEqual(before.revision);
      const honest = powersOf(history.states.find(({ revision }) => revision === after?.revision));
      expect([...powersOf(after)].filter((power) => !honest.has(power))).toEqual([]);
      if (after !== before) moved += 1;
    }),
    { numRuns: 1500 },
  );
  expect(moved).toBeGreaterThan(100);
});
