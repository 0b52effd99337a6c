// Skips the test that runs now, where only it knows what it needs: a rehearsal has read its page by then. Apart from
// needs.ts because programs without vitest use that, too.

import { beforeEach, TestRunner } from 'vitest';
import { lacking, skipped } from './needs.ts';

export function skipWithout(...needs: readonly string[]): void {
  const why = lacking(...needs);
  if (why !== undefined) end(why);
}

export function skipNow(missing: string): never {
  return end(skipped(missing));
}

let firstSkipped: string | undefined;

/** For a file whose tests are one story: what comes after a skipped one lacks what that would have done. */
export function tellsOneStory(): void {
  beforeEach(({ skip }) => {
    if (firstSkipped !== undefined) skip(firstSkipped);
  });
}

function end(why: string): never {
  firstSkipped ??= why;
  TestRunner.getCurrentTest()?.context.skip(why);
  throw new Error(why);
}
