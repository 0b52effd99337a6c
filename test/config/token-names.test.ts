// Names of static tokens: what may be one, and that no two tokens share one.

import { expect, it } from 'vitest';
import { load, violationsOf } from './loading.ts';

const yaml = (...names: readonly string[]) => `static_auth:
  policies: [{name: a, rules: [{effect: allow}]}]
  tokens:
${names.map((name, index) => `    - {name: ${JSON.stringify(name)}, secret: "sr_client_TEST_token_${index}", policies: [a]}\n`).join('')}`;

it.each(['v', 'validator-client_1.b', 'x'.repeat(64)])('%s is the name of a token', (name) => {
  const loaded = load({ yaml: yaml(name) });
  expect(loaded.ok && loaded.config.static_auth.tokens[0]?.name).toBe(name);
});

it.each(['', '0', '1abc', 'a b', 'a:b', 'x'.repeat(65)])('%j is none', (name) => {
  expect(violationsOf({ yaml: yaml(name) })).toEqual([
    expect.objectContaining({
      path: 'static_auth.tokens[0].name',
      problem: expect.stringContaining('start with a letter'),
    }),
  ]);
});

it('a name given twice is refused at its second place', () => {
  expect(violationsOf({ yaml: yaml('one', 'two', 'one') }).map(({ path }) => path)).toEqual([
    'static_auth.tokens[2].name',
  ]);
});
