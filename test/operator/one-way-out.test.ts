// house.md: no other path to the network exists in the CLI than client.ts over connect.ts, so that whoever reads those two
// knows whom a token can reach. And no flag skips a check.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TREE } from '../../operator/tree.ts';
import { flagsOf, walk } from '../../operator/walk.ts';

const ROOT = join(import.meta.dirname, '../../operator');
const NETWORK = /\bfrom '(?:node:)?(net|tls|https?|http2|dgram|dns|undici|child_process|worker_threads)(?:\/[a-z]+)?'/g;

it('only connect.ts opens connections, and only client.ts speaks HTTP over them', () => {
  const users = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const text = readFileSync(join(ROOT, name), 'utf8');
      const found = [...text.matchAll(NETWORK)].map(([, module]) => `${name} ${module}`);
      return /\bfetch\(|\bWebSocket\b|\bimport\(/.test(text) ? [...found, `${name} other`] : found;
    });
  // client.ts names the type of a socket; connect.ts makes one.
  expect(users.sort()).toEqual(['client.ts http', 'client.ts net', 'connect.ts net', 'connect.ts tls']);
  expect(readFileSync(join(ROOT, 'client.ts'), 'utf8')).toContain("import type { Socket } from 'node:net';");
});

it('no flag of any command skips the verification of the signer', () => {
  const flags = [...walk(TREE)].flatMap(({ node }) => (node.kind === 'group' ? [] : Object.keys(flagsOf(node))));
  expect(flags.filter((flag) => /insecure|skip|no-verify|unsafe/.test(flag))).toEqual([]);
});
