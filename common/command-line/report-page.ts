// A report as one page to keep, to print and to sign, made of data: sections of notes, fields and tables. Every text is
// escaped (common/formats/html.ts), and the page loads and runs nothing. What a report says is data of those who write
// one (operator/attestation/report-page.ts, ceremony/transcript/page.ts).

import { type Html, type HtmlTemplate, htmlPage, htmlTemplate } from '../formats/html.ts';
import type { Tone } from './paint.ts';

/** `exact`: characters that are compared one by one. Values of a list stand below each other. */
export type Value =
  | string
  | number
  | undefined
  | { readonly exact: string }
  | { readonly tone: Tone; readonly text: string }
  | readonly Value[];

export type Fields = readonly (readonly [string, Value])[];

export interface PageSection {
  readonly title: string;
  readonly box?: Tone | 'plain';
  readonly notes?: readonly Value[];
  /** One without a value is left out. */
  readonly fields?: Fields;
  /** `byHand`: its empty cells have room to write in. */
  readonly table?: {
    readonly head: readonly string[];
    readonly rows: readonly (readonly Value[])[];
    readonly byHand?: true;
  };
  /** Base64 of what the page was made of, in an attribute. */
  readonly evidence?: string;
}

interface ReportPage {
  readonly title: string;
  readonly heading: string;
  readonly sections: readonly PageSection[];
  /** Hex, at the foot of every sheet. */
  readonly foot?: string;
  /** What a text is shown as, before it is escaped. */
  readonly shown: (text: string) => string;
}

const SIGNS = { good: '✔ ', bad: '✘ ', doubtful: '– ', plain: '' };

export function reportPage({ title, heading, sections, foot, shown }: ReportPage): string {
  const html = htmlTemplate(shown);
  const body = html`<h1>${heading}</h1>${sections.map((one) => sectionOf(one, html))}`;
  return htmlPage(html, { title, style: foot === undefined ? STYLE : `${STYLE}${footStyle(foot)}`, body });
}

function sectionOf({ title, box, notes = [], fields = [], table, evidence }: PageSection, html: HtmlTemplate): Html {
  const value = (of: Value): Html => {
    if (typeof of !== 'object') return html`${of}`;
    if ('exact' in of) return html`<code>${of.exact}</code>`;
    if ('tone' in of) return html`<b class="${of.tone}">${SIGNS[of.tone]}${of.text}</b>`;
    return html`${of.map((one, at) => html`${at === 0 ? undefined : html`<br>`}${value(one)}`)}`;
  };
  const shown = fields.filter(([, of]) => of !== undefined);
  const attribute = evidence === undefined ? undefined : html` data-evidence="${evidence}"`;
  return html`
<section class="${box === undefined ? '' : `box ${box}`}"${attribute}>
<h2>${box && SIGNS[box]}${capital(title)}</h2>
${notes.map((note) => html`<p>${value(note)}</p>\n`)}${shown.length === 0 ? undefined : html`<dl>${shown.map(([name, of]) => html`<dt>${name}</dt><dd>${value(of)}</dd>\n`)}</dl>`}
${
  table &&
  html`<table class="${table.byHand ? 'by-hand' : ''}"><thead><tr>${table.head.map((name) => html`<th>${name}</th>`)}</tr></thead>
<tbody>${table.rows.map((row) => html`<tr>${row.map((of) => html`<td>${value(of)}</td>`)}</tr>\n`)}</tbody></table>`
}
</section>`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function footStyle(head: string): string {
  if (!/^[0-9a-f ]+$/.test(head)) throw new Error('a head is hex');
  return `@page { @bottom-left { content: "Head ${head}"; font: 7.5pt monospace }
  @bottom-right { content: counter(page) " of " counter(pages); font: 7.5pt monospace } }\n`;
}

/** On a screen, on A4 and on US letter: no row and no box is torn apart between sheets. */
const STYLE = `
@page { margin: 15mm 14mm } h1 { font-size: 1.2rem; margin: 0 0 .8rem }
body { margin: 0 auto; max-width: 64rem; padding: 1.2rem; color: #1b1f24; background: #fff; overflow-wrap: anywhere;
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; break-after: avoid } p { margin: .35rem 0; white-space: pre-line }
.box { border: 1px solid; border-left-width: .5rem; padding: .6rem 1rem; break-inside: avoid; margin: .8rem 0 }
.box h2 { margin: 0 0 .3rem; font-size: 1.35rem } .box p { color: #1b1f24 }
.good { color: #116329 } .bad, .box .bad { color: #a40e26 } .doubtful { color: #7d4e00 }
table { border-collapse: collapse; width: 100%; font-size: .92em }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #d0d7de }
th { font-size: .85em; overflow-wrap: normal } td { white-space: pre-line } td b { white-space: nowrap }
thead { display: table-header-group } tr { break-inside: avoid } .by-hand td { height: 13mm }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .4rem 0 } dd { margin: 0 }
code { font: .84em/1.4 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
@media screen and (max-width: 40rem) { dl { display: block } }
@media print { body { padding: 0; max-width: none; font-size: 9.5pt } td code { font-size: 6.8pt } }
`;
