// Pages of HTML from text that others chose. A template escapes every value that is put into it, unless the value is a
// template's result itself: nobody has to remember to escape. Values stand between tags or in quoted attributes, which
// is where the escapes hold; never in a script, a style or an address.

/** Markup that is finished. */
export class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

export type HtmlValue = string | number | Html | readonly HtmlValue[];

/** Values are escaped; lists are joined. */
export function html(markup: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(markup.map((text, at) => (at === 0 ? text : escaped(values[at - 1] ?? '') + text)).join(''));
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(value: HtmlValue): string {
  if (value instanceof Html) return value.toString();
  if (isList(value)) return value.map(escaped).join('');
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

function isList(value: HtmlValue): value is readonly HtmlValue[] {
  return Array.isArray(value);
}
