// Mutants of our verifiers: each check taken out, each limit moved by one. A mutant is a set of modules of its own,
// without types, in a folder that goes afterwards; nothing else of the program changes.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAst } from 'vitest/node';
import { MUTANTS_EVERY } from './scale.ts';

const ROOT = new URL('../../', import.meta.url);

export interface MutantsOptions<Program> {
  /** Copied for each mutant: whatever imports one of them has to be one of them. */
  readonly files: readonly string[];
  readonly mutated: readonly string[];
  /** Statements that are taken out whole: calls of these functions. */
  readonly checks?: readonly string[];
  /** Take out conditional returns and bounds of schemas, too, and move each `MAX_…` by one. */
  readonly withBounds?: boolean;
  /** By mutant: why no case shows it. One that is killed after all, or is gone, is told. */
  readonly equivalent: Readonly<Record<string, string>>;
  readonly load: (module: (file: string) => Promise<unknown>) => Promise<Program>;
  readonly isKilled: (program: Program) => boolean;
}

export interface FoundMutants {
  readonly mutants: number;
  readonly survivors: readonly string[];
  readonly killed_equivalents: readonly string[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Mutant {
  readonly place: string;
  readonly what: string;
  readonly source: string;
}

/** @throws when the program itself does not judge the cases as stated */
export async function findMutants<Program>(options: MutantsOptions<Program>): Promise<FoundMutants> {
  const { mutated, equivalent, isKilled } = options;
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-mutants-'));
  try {
    if (isKilled(await loaded(options, join(folder, 'whole')))) throw new Error('the program does not judge as stated');
    const survivors: string[] = [];
    const unused = new Set(Object.keys(equivalent));
    let count = 0;
    for (const file of mutated) {
      for (const { place, what, source } of mutantsOf(file, options)) {
        count += 1;
        if (count % MUTANTS_EVERY !== 0) {
          unused.delete(what); // it is not told
          continue;
        }
        if (isKilled(await loaded(options, join(folder, String(count)), { file, source }))) continue;
        if (what in equivalent) unused.delete(what);
        else survivors.push(`${place}: ${what}`);
      }
    }
    return { mutants: count, survivors, killed_equivalents: [...unused] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Kinds = Pick<MutantsOptions<unknown>, 'checks' | 'withBounds'>;

function mutantsOf(file: string, { checks = [], withBounds = false }: Kinds): readonly Mutant[] {
  const source = stripTypeScriptTypes(readFileSync(new URL(file, ROOT), 'utf8'));
  const place = (node: Node): string => `${file}:${source.slice(0, node.start).split('\n').length}`;
  const text = (node: Node): string => source.slice(node.start, node.end).replaceAll(/\s+/g, ' ');
  const replaced = (node: Node, replacement: string): string =>
    source.slice(0, node.start) + replacement + source.slice(node.end);
  return nodesOf(parseAst(source)).flatMap((node): Mutant[] => {
    const without = (one: Node, replacement: string, what = 'without'): Mutant => ({
      place: place(one),
      what: `${what}: ${text(one)}`,
      source: replaced(one, replacement),
    });
    if (isCheck(node, checks)) return [without(node, ';')];
    const conditions = operandsOf(node).map(([operand, neutral]) => without(operand, neutral, 'without the operand'));
    if (!withBounds) return conditions;
    if (node.type === 'IfStatement') return [without(node, ';')];
    const bound = boundIn(node);
    if (bound !== undefined)
      return [
        {
          place: place(node),
          what: `without the bound: ${bound.name} of ${text(node)}`,
          source: replaced(node, bound.left(source)),
        },
      ];
    const limit = limitIn(node);
    const moved = limit === undefined ? [] : [limit.value - 1, limit.value + 1];
    return [
      ...conditions,
      ...moved.map((value) => without(limit?.node ?? node, String(value), `${value} in place of`)),
    ];
  });
}

function isCheck(node: Node, checks: readonly unknown[]): boolean {
  if (node.type !== 'ExpressionStatement') return false;
  const { expression } = node as Node & { expression?: { type: string; callee?: { name?: string } } };
  return expression?.type === 'CallExpression' && checks.includes(expression.callee?.name);
}

function operandsOf(node: Node): readonly (readonly [Node, string])[] {
  if (node.type !== 'LogicalExpression') return [];
  const { left, right, operator } = node as unknown as { left: Node; right: Node; operator: string };
  if (operator === '??') return [];
  const neutral = operator === '&&' ? 'true' : 'false';
  return [left, right].map((operand) => [operand, neutral] as const);
}

/** Not `strictObject`: what it refuses differs from the text that is written of the value, which is compared. */
const BOUNDS: readonly unknown[] = ['min', 'max', 'regex'];

/** A call of a schema that bounds it, and the source without it. */
function boundIn(node: Node): { readonly name: string; left(source: string): string } | undefined {
  if (node.type !== 'CallExpression') return undefined;
  const { callee } = node as Node & { callee: Node & { object?: Node; property?: Node & { name?: string } } };
  const { object, property } = callee;
  if (object === undefined || property === undefined) return undefined;
  const name = property.name ?? '';
  return BOUNDS.includes(name) ? { name, left: (source) => source.slice(object.start, object.end) } : undefined;
}

function limitIn(node: Node): { readonly node: Node; readonly value: number } | undefined {
  if (node.type !== 'VariableDeclarator') return undefined;
  const { id, init } = node as Node & { id: { name?: string }; init?: (Node & { value?: unknown }) | null };
  if (id.name?.startsWith('MAX_') !== true || init?.type !== 'Literal' || typeof init.value !== 'number')
    return undefined;
  return { node: init, value: init.value };
}

function nodesOf(value: unknown): readonly Node[] {
  if (typeof value !== 'object' || value === null) return [];
  const below = Object.values(value).flatMap(nodesOf);
  return 'type' in value && 'start' in value ? [value as Node, ...below] : below;
}

async function loaded<Program>(
  { files, load }: MutantsOptions<Program>,
  folder: string,
  changed?: { readonly file: string; readonly source: string },
): Promise<Program> {
  for (const one of files) {
    const from = new URL(one, ROOT);
    const whole = one === changed?.file ? changed.source : stripTypeScriptTypes(readFileSync(from, 'utf8'));
    const linked = whole.replaceAll(/from '([^']*)'/g, (_, path: string) => {
      if (!path.startsWith('.')) return `from '${path.startsWith('node:') ? path : import.meta.resolve(path)}'`;
      const target = new URL(path, from);
      const isOurs = files.includes(target.href.slice(ROOT.href.length));
      return `from '${isOurs ? path.replace(/\.ts$/, '.mjs') : target.href}'`;
    });
    const copy = join(folder, one.replace(/\.ts$/, '.mjs'));
    mkdirSync(join(copy, '..'), { recursive: true });
    writeFileSync(copy, linked);
  }
  return load((file) => import(pathToFileURL(join(folder, file.replace(/\.ts$/, '.mjs'))).href));
}
