// One strictness for every YAML file: what the enclave refuses in a configuration is refused in the ceremony's file, in
// a profile and in a file of keys.

import { describe, expect, it } from 'vitest';
import { readYaml } from '../../ceremony/yaml.ts';
import { parseStrictYaml, parseStrictYamlStream } from '../../common/formats/yaml.ts';
import { parseDescriptors } from '../../signer/keys/files/descriptor.ts';

const REFUSED: readonly (readonly [what: string, text: string, line: number, problem: string])[] = [
  ['an anchor', 'a: 1\nb: &x 1\n', 2, 'an anchor is used'],
  ['an alias', 'a: &x 1\nb: *x\n', 2, 'an alias is used'],
  ['another version', '%YAML 1.1\n---\na: 1\n', 1, 'the document declares another YAML version than 1.2'],
  ['a tag', 'a: !!str 1\n', 1, 'a tag is used'],
  ['a repeated key', 'a: 1\na: 2\n', 2, 'a key is repeated'],
];

describe.each(REFUSED)('%s', (_what, text, line, problem) => {
  it('is refused in a configuration', () => {
    expect(parseStrictYaml(text)).toMatchObject({ problems: expect.arrayContaining([{ line, problem }]) });
  });

  it("is refused in a ceremony's file", () => {
    expect(() => readYaml(text)).toThrow(/^the YAML is refused: line \d+: /);
  });

  it('is refused in a file of keys', () => {
    expect(parseDescriptors('keys.yaml', Buffer.from(text))[0]).toHaveProperty('refused');
  });
});

it('a stream of documents is read one by one: one that is refused refuses no other', () => {
  const documents = parseStrictYamlStream('a: "1"\n---\na: &x 1\n---\na: 3\n', 'text');
  expect(documents).toMatchObject([
    { value: { a: '1' } },
    { problems: [{ line: 3, problem: 'an anchor is used' }] },
    { value: { a: '3' } },
  ]);
});

it('a document with an alias is never read, also when something else is wrong: it may name nothing, or too much', () => {
  const read = parseStrictYaml('a: &x 1\nb: *x\nb: *y\n');
  const problem = 'an alias is used';
  expect(read).toMatchObject({ problems: expect.arrayContaining([{ line: 3, problem: 'a key is repeated' }]) });
  expect(read).toMatchObject({ problems: expect.arrayContaining([{ line: 3, problem }]) });
  expect(read).not.toHaveProperty('document');
});
