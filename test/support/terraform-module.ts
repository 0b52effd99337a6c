// A module of Terraform, parsed (HashiCorp's own parser of HCL, compiled to WebAssembly): blocks are lists of objects,
// expressions are texts `${…}`. Nothing is evaluated, and no provider is asked.

import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Its own types bring those of browsers along, whose CryptoKey is another one. */
const { parse } = createRequire(import.meta.url)('@cdktn/hcl2json') as {
  readonly parse: (name: string, text: string) => Promise<unknown>;
};

export type Block = Readonly<Record<string, unknown>>;
type Labelled = Readonly<Record<string, readonly Block[]>>;

export interface Module {
  readonly folder: string;
  readonly variables: Labelled;
  readonly outputs: Labelled;
  readonly locals: Block;
  /** By `aws_kms_key.this`. */
  readonly resources: ReadonlyMap<string, Block>;
  /** By `data.aws_region.this`. */
  readonly data: ReadonlyMap<string, Block>;
  readonly modules: Labelled;
  /** Every expression, of whatever it is part. */
  readonly expressions: readonly string[];
}

export async function readModule(folder: string): Promise<Module> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.tf'));
  const parsed = await Promise.all(
    files.map(async (name) => (await parse(name, readFileSync(join(folder, name), 'utf8'))) as Block),
  );
  const merged = (kind: string): Block => Object.assign({}, ...parsed.map((file) => file[kind] ?? {}));
  const named = (kind: string, prefix: string): ReadonlyMap<string, Block> =>
    new Map(
      parsed.flatMap((file) =>
        Object.entries((file[kind] ?? {}) as Readonly<Record<string, Labelled>>).flatMap(([type, of]) =>
          Object.entries(of).map(([name, [body = {}]]) => [`${prefix}${type}.${name}`, body] as const),
        ),
      ),
    );
  const locals = parsed.flatMap((file) => (file['locals'] ?? []) as readonly Block[]);
  return {
    folder,
    variables: merged('variable') as Labelled,
    outputs: merged('output') as Labelled,
    locals: Object.assign({}, ...locals),
    resources: named('resource', ''),
    data: named('data', 'data.'),
    modules: merged('module') as Labelled,
    expressions: parsed.flatMap((file) => [...expressionsIn(file)]),
  };
}

/** The one block of a kind in another one. */
export function blockIn(block: Block, kind: string): Block {
  const blocks = block[kind];
  if (!Array.isArray(blocks) || blocks.length !== 1) throw new Error(`there is not one block ${kind}`);
  return blocks[0] as Block;
}

function* expressionsIn(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.includes('${')) yield value;
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) yield* expressionsIn(member);
}
