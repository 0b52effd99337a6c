// HTML by a template whose every value is escaped: what comes from evidence, from a file's name or from a URL is text
// on the page, whatever it holds. There is no way to put a string in as markup.

import { printable } from '../../../command-line/text.ts';

/** Markup that the template below made. */
class Html {
  readonly #markup: string;

  constructor(strings: readonly string[], values: readonly HtmlValue[]) {
    this.#markup = strings.map((text, at) => text + (at < values.length ? render(values[at]) : '')).join('');
  }

  toString(): string {
    return this.#markup;
  }
}

export type { Html };
export type HtmlValue = string | number | Html | readonly HtmlValue[] | undefined;

/** The strings are the source's own; values are escaped, and lists are put one after the other. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(strings, values);
}

function render(value: HtmlValue): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(render).join('');
  return escapeText(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * For element content and for quoted attributes; what cannot be seen, or turns the writing direction, is spelled out.
 */
function escapeText(text: string): string {
  return printable(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
