// Looks at a site as it was built: every link leads to a file and a place that are there, and nothing is loaded from
// another host. Links that a reader follows to other sites are not asked for.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ORIGIN = 'http://site.invalid';
const TAG = /<([a-z][a-z0-9]*)\s([^>]*)>/gi;

interface Reference {
  readonly tag: string;
  readonly target: string;
}

/** What is wrong, a line each. */
export function problemsOf(site: string): readonly string[] {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
  if (pages.length === 0) return [`${site} has no page`];
  const texts = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]));
  const places = new Map([...texts].map(([page, text]) => [page, placesIn(text)]));
  return [...texts].flatMap(([page, text]) =>
    referencesIn(text).flatMap((reference) => {
      const problem = problemOf(reference, { site, page, places });
      return problem === undefined ? [] : [`${page}: ${reference.target}: ${problem}`];
    }),
  );
}

interface Looked {
  readonly site: string;
  readonly page: string;
  readonly places: ReadonlyMap<string, ReadonlySet<string>>;
}

function problemOf({ tag, target }: Reference, { site, page, places }: Looked): string | undefined {
  const url = new URL(target, `${ORIGIN}/${page}`);
  if (url.protocol === 'data:' || url.protocol === 'mailto:') return undefined;
  if (url.origin !== ORIGIN) return tag === 'a' ? undefined : 'is loaded from another host';
  const path = decodeURIComponent(url.pathname).replace(/\/$/, '/index.html').slice(1);
  if (!existsSync(join(site, path)) || !statSync(join(site, path)).isFile()) return 'is not there';
  const place = decodeURIComponent(url.hash.slice(1));
  return place === '' || places.get(path)?.has(place) === true ? undefined : `${path} has no such place`;
}

function placesIn(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id));
}

function referencesIn(html: string): readonly Reference[] {
  return [...html.matchAll(TAG)].flatMap(([, tag = '', attributes = '']) =>
    [...attributes.matchAll(/(?:^|\s)(?:href|src)="([^"]*)"/g)].map(([, target = '']) => ({
      tag: tag.toLowerCase(),
      target: target.replaceAll('&amp;', '&'),
    })),
  );
}
