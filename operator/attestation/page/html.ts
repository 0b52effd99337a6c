// The template of the report's page. What comes from evidence, from a file's name or from a URL is text on the page,
// whatever it holds; what cannot be seen, or turns the writing direction, is spelled out.

import { printable } from '../../../command-line/text.ts';
import { type HtmlTemplate, htmlTemplate } from '../../../formats/html.ts';

export const html: HtmlTemplate = htmlTemplate(printable);
