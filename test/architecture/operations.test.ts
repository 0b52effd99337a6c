// What a new signing operation has to bring. A root that only our own code computes is not known to be right, and a
// signature over a wrong one costs money: each operation has its row of the specification, a vector of others, a root
// that the conformance kit computes without the signer's code, a case of that kit, and a word on which fork it is of.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OPERATIONS, type Operation } from '../../signer/api/operations.ts';
import { SAME_IN_EVERY_FORK, SINCE_GLOAS } from '../../signer/signing/message-fork.ts';
import { vectorPath } from '../support/vectors.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const specification = textOf('docs/specification/signing.md');
const expectedRoots = textOf('test/expected/expected-root.ts');
const KIT = ['test/expected/messages.ts', 'lab/conformance/vector-cases.ts'];
const hasKit = KIT.every((path) => existsSync(join(ROOT, path)));
const folders = ['signing', 'gloas'].map((folder) => vectorPath(folder));
const vectors = folders.flatMap((folder) =>
  folder === undefined ? [] : readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')),
);

/** Neither the same in every fork, nor begun with Gloas. */
const OTHERS: Readonly<Partial<Record<Operation, string>>> = {
  AGGREGATE_AND_PROOF: 'its container changed with Electra',
  BUILDER_REQUEST_AUTH: 'its domain has the genesis fork version',
  VALIDATOR_REGISTRATION: 'its domain has the genesis fork version',
  VOLUNTARY_EXIT: 'its domain has the version of Capella',
};

describe.each(OPERATIONS)('%s', (operation) => {
  it('has its row of the specification', () => {
    expect(specification).toMatch(new RegExp(`^\\| ${operation}(?:,| \\|)`, 'm'));
  });

  it.skipIf(vectors.length === 0)('has a vector of others', () => {
    expect(vectors.filter((text) => text.includes(`"${operation}"`))).not.toEqual([]);
  });

  it('has a root that is computed without the signer', () => {
    expect(expectedRoots).toMatch(new RegExp(`^  ${operation}: \\{`, 'm'));
  });

  it.skipIf(!hasKit)('has a case of the conformance kit', () => {
    expect(KIT.map(textOf).join('')).toContain(`'${operation}'`);
  });

  it('says of which fork it is', () => {
    const words = [SAME_IN_EVERY_FORK.has(operation), SINCE_GLOAS.has(operation), operation in OTHERS];
    expect(words.filter(Boolean)).toHaveLength(1);
  });
});
