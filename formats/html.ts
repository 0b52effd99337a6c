// Pages of HTML from text that others chose. A template escapes every value that is put into it, unless the value is a
// template's result itself: nobody has to remember to escape. Values stand between tags or in quoted attributes, which
// is where the escapes hold; never in a script, a style or an address.

/** Markup that is finished. */
class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

export type { Html };
export type HtmlValue = string | number | Html | readonly HtmlValue[] | undefined;
/** Values are escaped, lists are joined, nothing stands for undefined. */
export type HtmlTemplate = (markup: TemplateStringsArray, ...values: readonly HtmlValue[]) => Html;

/** @param shown what a text of somebody else looks like on the page, before it is escaped */
export function htmlTemplate(shown: (text: string) => string): HtmlTemplate {
  const escaped = (value: HtmlValue): string => {
    if (value === undefined) return '';
    if (value instanceof Html) return value.toString();
    if (typeof value === 'object') return value.map(escaped).join('');
    return shown(String(value)).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
  };
  return (markup, ...values) =>
    new Html(markup.map((text, at) => (at === 0 ? text : escaped(values[at - 1]) + text)).join(''));
}

/** For texts that were checked when they came in: they are shown as they are. */
export const html: HtmlTemplate = htmlTemplate((text) => text);

/** Markup that no template made: a style, which holds no text of others. */
export function unsafeMarkup(markup: string): Html {
  return new Html(markup);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
