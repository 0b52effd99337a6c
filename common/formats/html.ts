// Pages of HTML from text that others chose. A template escapes every value, unless it is a template's result itself.
// Values stand between tags or in quoted attributes; never in a script, a style or an address. The one frame of every
// page (the operator's reports, a ceremony's transcript) allows its own style, and nothing to load or run.

import { createHash } from 'node:crypto';

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

type HtmlValue = string | number | Html | readonly HtmlValue[] | undefined;
/** Values are escaped, lists are joined, nothing stands for undefined. */
export type HtmlTemplate = (markup: TemplateStringsArray, ...values: readonly HtmlValue[]) => Html;

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

interface HtmlPage {
  readonly title: string;
  /** It holds no text of others. */
  readonly style: string;
  readonly body: Html;
}

/** CSP level 3: by its digest this style alone is applied. */
export function htmlPage(template: HtmlTemplate, { title, style, body }: HtmlPage): string {
  if (style.includes('<')) throw new Error('a style that could end its element');
  const digest = createHash('sha256').update(style).digest('base64');
  return template`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${digest}'">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${new Html(style)}</style>
</head>
<body>
${body}
</body>
</html>
`.toString();
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
