// The figures of docs/figures.md: written in the part of Mermaid that is known here, made of parts that are there, and
// in the order of the sources.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const FIGURES = new Map(
  [...textOf('docs/figures.md').matchAll(/<a id="([a-z-]+)"><\/a>[\s\S]*?```mermaid\n([\s\S]*?)```/g)].map(
    ([, name = '', text = '']) => [name, text.trimEnd().split('\n')],
  ),
);
const linesOf = (name: string): string[] => (FIGURES.get(name) ?? []).slice(1).map((line) => line.trim());

const NODE = String.raw`\w+(?:\["[^"\]]+"\])?`;
const GRAMMAR: Readonly<Record<string, RegExp>> = {
  'flowchart TD': new RegExp(String.raw`^  ${NODE} (?:-->|-\.->)\|"[^"|]+"\| ${NODE}$`),
  'stateDiagram-v2': /^ {2}(?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: [^:;#]+)?$/,
};

it('there are the five, each in the form that is known', () => {
  expect([...FIGURES.keys()]).toEqual(['trust', 'first-boot', 'signature', 'custody-split', 'key-life']);
  for (const [name, [kind = '', ...lines]] of FIGURES) {
    const form = GRAMMAR[kind];
    expect({ name, strange: lines.filter((line) => form?.test(line) !== true) }).toEqual({ name, strange: [] });
    expect(lines.length).toBeGreaterThan(6);
  }
});

it('every name in a line is declared: a typing error would be a part of its own', () => {
  for (const name of ['trust', 'first-boot', 'signature', 'custody-split']) {
    const text = linesOf(name).join('\n');
    const labelled = [...text.matchAll(/(\w+)\["/g)].map(([, id]) => id);
    const used = [...text.matchAll(/^(\w+)|\| (\w+)/gm)].map(([, from, to]) => from ?? to);
    expect(labelled.filter((id, at) => labelled.indexOf(id) !== at)).toEqual([]);
    expect(used.filter((id) => !labelled.includes(id))).toEqual([]);
  }
});

it('the parts are folders that are there', () => {
  const folders = [
    ...linesOf('trust')
      .join('\n')
      .matchAll(/\["([\w-]+\/)"\]/g),
  ].map(([, folder = '']) => folder);
  expect(folders.length).toBeGreaterThan(3);
  expect(folders.filter((folder) => !existsSync(join(ROOT, folder)))).toEqual([]);
});

it('a signature goes through files of its walk', () => {
  const [, walk = ''] = /^\| a signature \|(.*)\|$/m.exec(textOf('docs/architecture.md')) ?? [];
  const shown = linesOf('signature').flatMap((line) => /\["(\S+\.ts)"\]$/.exec(line)?.[1] ?? []);
  expect(shown.length).toBe(6);
  expect(shown.map((path) => walk.indexOf(`\`${path}\``)).filter((at) => at < 0)).toEqual([]);
  expect(shown.toSorted((a, b) => walk.indexOf(a) - walk.indexOf(b))).toEqual(shown);
});

describe('what the figures say of custody and keys', () => {
  const specification = textOf('docs/specification/custody.md');

  it('the rows of a first boot are those of the specification', () => {
    const [, transaction = ''] = /\*\*Initialisation\*\* writes ([^.]+) in one/.exec(specification) ?? [];
    const rows = (text: string): string[] => [...new Set(text.match(/[A-Z]+_[A-Z_]+/g))].sort();
    const written = linesOf('first-boot').find((line) => line.includes('writes')) ?? '';
    expect(rows(written)).toEqual(rows(transaction));
  });

  it('the split is the one of the example', () => {
    const { kms_threshold, kms_keys } = parse(textOf('docs/examples/ceremony.yaml')) as {
      readonly kms_threshold: number;
      readonly kms_keys: readonly unknown[];
    };
    const lines = linesOf('custody-split');
    expect(lines.filter((line) => /"share \d"/.test(line))).toHaveLength(kms_threshold);
    expect(lines.filter((line) => line.includes('custody<br/>key'))).toHaveLength(kms_keys.length);
  });

  it('a key has the states of its route', () => {
    const [, statuses = ''] =
      /\{keys: \[\{pubkey, status: ([^}]+)\}\]\}/.exec(textOf('docs/specification/keys.md')) ?? [];
    const states = new Set(linesOf('key-life').flatMap((line) => line.match(/^\w+|(?<=--> )\w+/g) ?? []));
    expect([...states].sort()).toEqual([...statuses.split('\\|'), 'deleted'].sort());
  });
});
