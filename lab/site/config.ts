// What the documentation site is made of, for VitePress: the Markdown of the project as it stands, from its root, so
// that every link between pages is right as it is. It is read in build/site-generator, too, which is as deep.

import { dirname, join, relative } from 'node:path';
import { slugOf } from '../../tools/reference/markdown.ts';
import { navigationOf } from './navigation.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = /README(?=\.md)/;
/** Nothing is loaded from another host; VitePress and the figures write scripts and styles into the page. */
const POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:";

/** @param draw a figure, from its text: SVG */
export const configWith = (draw: (figure: string) => string) => ({
  title: 'strongroom',
  description: 'A remote signer for Ethereum validator keys',
  lang: 'en',
  srcDir: ROOT,
  outDir: join(ROOT, 'build/site'),
  srcExclude: ['build/**'],
  rewrites: (page: string): string => page.replace(README, 'index'),
  head: [
    ['meta', { 'http-equiv': 'Content-Security-Policy', content: POLICY }],
    ['link', { rel: 'icon', href: 'data:,' }],
  ],
  metaChunk: true,
  vite: {
    build: { chunkSizeWarningLimit: 4000 },
    plugins: [{ name: 'vue-beside-vitepress', enforce: 'pre', resolveId: leaveVueToNode }],
  },
  markdown: {
    anchor: { slugify: slugOf },
    toc: { slugify: slugOf },
    config: (markdown: Markdown): void => useOwnRules(markdown, draw),
  },
  themeConfig: {
    search: { provider: 'local', options: { detailedView: true } },
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'Changes', link: '/CHANGELOG' },
      { text: 'Security', link: '/SECURITY' },
    ],
    sidebar: [
      { text: 'What it is', link: '/' },
      { text: 'Paths for readers', link: '/docs/' },
      { text: 'Contributing', link: '/CONTRIBUTING' },
      ...navigationOf(ROOT),
    ],
    outline: [2, 3],
    externalLinkIcon: true,
  },
});

/** Node.js finds Vue beside VitePress; from a page outside of that folder Vite does not. */
function leaveVueToNode(id: string, _from: unknown, { ssr }: { readonly ssr?: boolean }) {
  return ssr === true && /^vue(?:\/|$)/.test(id) ? { id, external: true } : undefined;
}

interface Token {
  type: string;
  tag: string;
  info: string;
  content: string;
  attrs: [name: string, value: string][] | null;
  children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

type Render = (tokens: Token[], at: number, ...rest: unknown[]) => string;

/** The part of markdown-it that is used here. */
interface Markdown {
  readonly core: {
    readonly ruler: { push(name: string, rule: (state: { tokens: Token[]; env: { path: string } }) => void): void };
  };
  readonly renderer: { readonly rules: Record<string, Render | undefined> };
  readonly utils: { escapeHtml(text: string): string };
}

function useOwnRules(markdown: Markdown, draw: (figure: string) => string): void {
  const fence = markdown.renderer.rules['fence'];
  markdown.renderer.rules['fence'] = (tokens, at, ...rest) => {
    const token = tokens[at];
    if (token?.info.trim() === 'mermaid') return figureOf(draw(token.content));
    return fence?.(tokens, at, ...rest) ?? '';
  };
  markdown.core.ruler.push('links_of_the_project', ({ tokens, env }) => {
    for (const { children } of tokens) if (children !== null) mendLinks(children, env.path);
  });
}

/** It is in the page that is sent; as part of a template, Vue would lose its last element where scripts run. */
function figureOf(drawing: string): string {
  const text = encodeURIComponent(drawing).replaceAll("'", '%27');
  return `<div class="figure" v-html="decodeURIComponent('${text}')" />\n`;
}

/** A README is the index of its folder; a source, which the site does not have, is named by its path. */
function mendLinks(tokens: readonly Token[], page: string): void {
  for (const [at, token] of tokens.entries()) {
    const href = token.type === 'link_open' ? token.attrGet('href') : null;
    if (href === null || /^(?:[a-z]+:|#)/.test(href)) continue;
    const path = href.replace(/#.*/, '');
    const fromRoot = relative(ROOT, join(dirname(page), path));
    if (path.endsWith('.md')) token.attrSet('href', href.replace(README, 'index'));
    else if (isCopied(fromRoot)) token.attrSet('target', '_blank');
    else becomeWords(tokens.slice(at), fromRoot);
  }
}

/** Examples and drawings are files of the site (main.ts). */
export function isCopied(fromRoot: string): boolean {
  return fromRoot.startsWith('docs/');
}

/** @param tokens from the one that opens the link */
function becomeWords(tokens: readonly Token[], title: string): void {
  const [open] = tokens;
  const close = tokens.find(({ type }) => type === 'link_close');
  if (open === undefined || close === undefined) return;
  for (const token of [open, close]) Object.assign(token, { tag: 'span', type: token.type.replace('link', 'span') });
  open.attrs = [
    ['class', 'source'],
    ['title', title],
  ];
}
