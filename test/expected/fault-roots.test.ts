// The signing roots of the client faults by another implementation (fault_roots.py): SSZ by hand, in another language.
// So neither our own code nor @lodestar/types, with which they were made, is what calls them right.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findPython } from '../support/needs.ts';
import { clientFaults } from './client-faults.ts';

const VECTORS = join(import.meta.dirname, './client-faults.json');
const python = findPython('hashlib');

it.skipIf(python === undefined)('every fault of a client has the root that the specification by hand asks for', () => {
  const { stdout, stderr } = spawnSync(python ?? '', [join(import.meta.dirname, 'fault_roots.py'), VECTORS], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  const expected = clientFaults().vectors.flatMap(({ name, signing_root }) =>
    signing_root ? [[name, signing_root]] : [],
  );
  expect(expected.length).toBeGreaterThan(25);
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(expected));
});
