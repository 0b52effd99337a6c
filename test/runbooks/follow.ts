// What happens around a reader who follows a page: time goes by, where the page demands that something is over.

import type { Block } from './page.ts';
import type { ServiceWorld } from './service-world.ts';

/** A page that looks for what the last minutes have: for the journal these minutes have gone by. */
const SOON = /--since -(\d+)min[^\n]*(?:\n[^\n]*)*jq -s length/;

/** For `before` of a rehearsal, with what the test does there. */
export function after(
  world: Pick<ServiceWorld, 'later'>,
  also: (block: Block) => Promise<void> = async () => undefined,
): (block: Block) => Promise<void> {
  return async (block) => {
    await also(block);
    world.later(Number(SOON.exec(block.commands)?.[1] ?? 0));
  };
}
