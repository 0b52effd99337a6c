// The template, the frame and the look of the reports' pages. What comes from evidence, from a file's name or from a
// URL is text on the page, whatever it holds; what cannot be seen, or turns the writing direction, is spelled out. A
// page loads nothing: no fonts, no images, no scripts.

import { printable } from '../../../common/command-line/text.ts';
import { type Html, type HtmlTemplate, htmlPage, htmlTemplate } from '../../../common/formats/html.ts';
import { VERSION } from '../../../signer/api/version.ts';
import { rfc3339 } from '../report.ts';
import { LIMITS } from './words.ts';

export const html: HtmlTemplate = htmlTemplate(printable);

interface ReportPage {
  readonly title: string;
  readonly heading: string;
  readonly body: Html;
  /** Milliseconds since the epoch. */
  readonly madeAt: number;
  readonly rules: string;
}

export function reportPage({ title, heading, body, madeAt, rules }: ReportPage): string {
  const whole = html`<h1>${heading}</h1>
${body}
<h2>What this does not prove</h2>
<ul>${LIMITS.map((limit) => html`<li>${limit}</li>`)}</ul>
<footer>Made by strongroom ${VERSION} at ${rfc3339(madeAt)}, <code>strongroom operator verify --report</code>.
${rules} This page holds no scripts and loads nothing.</footer>`;
  return htmlPage(html, { title, style: STYLE, body: whole });
}

const STYLE = `
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --shade: #f6f8fa;
  --good: #116329; --bad: #a40e26; --open: #7d4e00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; overflow-wrap: anywhere; padding: 2rem 1.5rem 4rem; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1rem; font-weight: 600; color: var(--soft); margin: 0 0 1rem; letter-spacing: .02em; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: .95rem; margin: 1.5rem 0 .4rem; }
p { margin: .4rem 0; max-width: 48rem; }
.note { color: var(--soft); font-size: .9em; }
.verdict { border: 1px solid; border-left-width: .6rem; border-radius: .3rem; padding: 1rem 1.25rem 1.1rem; }
.verdict strong { display: block; font-size: 1.6rem; line-height: 1.25; }
.verdict p { color: var(--ink); }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
.verdict.good { background: #f0f9f2; } .verdict.bad { background: #fdf1f2; } .verdict.open { background: #fdf6e9; }
.counts { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; margin: .9rem 0 0; padding: 0; list-style: none; }
.counts b { font-size: 1.1rem; } .counts .note { font-size: 1em; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 1rem; font-size: .93em; }
th { overflow-wrap: normal; } th, td { text-align: left; vertical-align: top; padding: .34rem .8rem .34rem 0; border-bottom: 1px solid var(--line); }
thead th { font-size: .8em; color: var(--soft); font-weight: 600; text-transform: uppercase; letter-spacing: .04em; }
tbody th { font-weight: 600; white-space: nowrap; }
td.time { white-space: nowrap; font-size: .93em; } td.result { white-space: nowrap; font-weight: 600; }
td.wide { width: 99%; }
code { font: .86em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
code span { display: block; white-space: nowrap; } code.note { font-size: .8em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; padding: .6rem; background: var(--shade);
  font: .72em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.4rem; margin: .6rem 0 1rem; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
ul { margin: .4rem 0 1rem; padding-left: 1.2rem; max-width: 48rem; } li { margin: .2rem 0; }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .85em; }
@media screen and (max-width: 76rem) { code span { white-space: normal; } }
@media screen and (max-width: 48rem) { body { padding: 1rem; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } thead { display: none; }
  tbody th, td, td.time { display: block; border-bottom: 0; padding: .1rem 0; white-space: normal; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); font-weight: 400; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; } }
@media print {
  @page { size: A4; margin: 16mm 14mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h2, h3, thead { break-after: avoid; } tr, .verdict, dl > * { break-inside: avoid; } thead { display: table-header-group; }
  .verdict { background: none !important; } code { font-size: 7.4pt; } td code, td code.note { font-size: 6.1pt; }
  table { font-size: 8.6pt; } th, td { padding-right: .5rem; } td.time { font-size: 7.6pt; }
}
`;
