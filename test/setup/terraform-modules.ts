// The modules of deploy/terraform, parsed once for all tests of a file, and how a test finds a block in them.
// A resource or block that is not there fails the test that asks for it.

import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { type Block, type Module, readModule } from '../support/terraform-module.ts';
import { ROOT } from './terraform-templates.ts';

/** The parser gives an expression that is not a literal in this form. */
export const expression = (text: string): string => `\${${text}}`;

export let key: Module;
export let signer: Module;
export let example: Module;

beforeAll(async () => {
  [key, signer, example] = (await Promise.all(
    ['custody-key', 'signer', 'example'].map((name) => readModule(join(ROOT, name))),
  )) as [Module, Module, Module];
});

export function resource(module: Module, name: string): Block {
  const found = module.resources.get(name);
  if (found === undefined) throw new Error(`there is no resource ${name}`);
  return found;
}

export function blockOf(blocks: readonly Block[] | undefined): Block {
  const [block] = blocks ?? [];
  if (block === undefined) throw new Error('there is no block');
  return block;
}
