// The places in a Markdown file that a link can name: its headings, as forges make anchors of them, and `<a id="…">`.
// What stands between fences is no heading.

import { readFileSync } from 'node:fs';
import { slugOf } from '../../tools/reference/markdown.ts';

const FENCED = /^( *)```.*\n[\s\S]*?^ *```$/gm;
const byDocument = new Map<string, ReadonlySet<string>>();

export function anchorsOf(path: string): ReadonlySet<string> {
  const known = byDocument.get(path);
  if (known !== undefined) return known;
  const anchors = anchorsIn(readFileSync(path, 'utf8'));
  byDocument.set(path, anchors);
  return anchors;
}

export function withoutFences(markdown: string): string {
  return markdown.replaceAll(FENCED, '');
}

/** A heading that comes again gets a number. */
function anchorsIn(markdown: string): ReadonlySet<string> {
  const anchors = new Set([...markdown.matchAll(/<a id="([\w-]+)">/g)].map(([, id = '']) => id));
  const uses = new Map<string, number>();
  for (const [, heading = ''] of withoutFences(markdown).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = slugOf(heading);
    const count = uses.get(slug) ?? 0;
    uses.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}
