// The statements of docs/guides/postgres.md, as an administrator would paste them.

import { readFileSync } from 'node:fs';

/** @param name of the comment that they begin with */
export function guideSql(name: string): string {
  const guide = readFileSync(new URL('../../docs/guides/postgres.md', import.meta.url), 'utf8');
  const [, statements] = guide.split(`-- ${name}\n`);
  if (statements === undefined) throw new Error(`the guide has no statements "${name}"`);
  return statements.slice(0, statements.indexOf('```'));
}
