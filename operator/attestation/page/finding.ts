// One piece of evidence on the report's page: its steps, its chain with the window of each certificate, its members and
// its registers beside the reference values.

import type { ChainCertificate } from '../../../common/attestation/chain.ts';
import type { Html } from '../../../common/formats/html.ts';
import {
  chainOf,
  type Finding,
  type Findings,
  type RegisterReport,
  registersOf,
  rfc3339,
  TITLES,
  verdictWithin,
} from '../report.ts';
import { html } from './html.ts';
import { halves } from './measured.ts';
import type { PageContext } from './page-context.ts';
import { RESULT_WORDS, VERDICT_WORDS } from './words.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** From here on a year says more than a count of days. */
const FAR_MS = 2 * 365 * DAY_MS;

export function findingSections(finding: Finding, findings: Findings, context: PageContext): Html {
  const { evidence, verdict } = finding;
  const { tone, title } = VERDICT_WORDS[verdictWithin(finding, findings, context)];
  return html`<h2>${capital(TITLES[evidence])}: <span class="${tone}">${title}</span></h2>
<h3>Steps, with their details</h3>
<div class="scroll"><table><thead><tr><th>Step</th><th>Result</th><th>Detail</th></tr></thead><tbody>${verdict.steps.map(
    ({ name, result, code, detail }) =>
      html`<tr><th scope="row">${name}</th>${resultCell(result)}<td class="wide">${code === undefined ? undefined : html`<b>${code}</b>: `}${code === 'wrong_pcr' ? 'see the registers below' : detail}</td></tr>
`,
  )}</tbody></table></div>
${chainTable(chainOf(verdict), context)}
${members(finding)}
${registerTable(registersOf(verdict, context.referenceValues))}`;
}

/** @param label where the head of the table is not shown: on a phone */
export function resultCell(result: string, label = 'Result'): Html {
  const { tone, words } = RESULT_WORDS[result] ?? { tone: 'open', words: result };
  return html`<td class="result ${tone}" data-label="${label}">${words}</td>`;
}

function chainTable(chain: readonly ChainCertificate[], { at }: PageContext): Html | undefined {
  if (chain.length === 0) return undefined;
  return html`<h3>Chain, and the window of each certificate</h3>
<div class="scroll"><table><thead><tr><th>Certificate, and its SHA-256</th><th>Valid from</th><th>Until</th><th>At the judged time</th></tr></thead>
<tbody>${chain.map(
    ({ name, sha256, notBefore, notAfter }) =>
      html`<tr><td class="wide"><code>${name}</code><br><code class="note">${sha256}</code></td><td class="time" data-label="Valid from">${rfc3339(notBefore)}</td><td class="time" data-label="Until">${rfc3339(notAfter)}</td>${windowCell(at, notBefore, notAfter)}</tr>
`,
  )}</tbody></table></div>`;
}

function windowCell(at: number, notBefore: number, notAfter: number): Html {
  if (at > notAfter) return html`<td class="result bad">✘ ended ${duration(at - notAfter)} before</td>`;
  if (at < notBefore) return html`<td class="result bad">✘ begins ${duration(notBefore - at)} later</td>`;
  const left = notAfter - at;
  if (left > FAR_MS) return html`<td class="result good">✔ ends in ${String(new Date(notAfter).getUTCFullYear())}</td>`;
  return html`<td class="result good">✔ ends ${duration(left)} later</td>`;
}

/** 2 h 59 min; 5 d 4 h. */
function duration(ms: number): string {
  if (ms >= DAY_MS) return `${Math.floor(ms / DAY_MS)} d ${Math.floor((ms % DAY_MS) / HOUR_MS)} h`;
  if (ms >= HOUR_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
  if (ms >= MINUTE_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return `${Math.ceil(ms / 1000)} s`;
}

function members({ verdict }: Finding): Html | undefined {
  const { document } = verdict;
  if (document === undefined) return undefined;
  const hex = (bytes: Buffer | undefined): Html =>
    bytes === undefined ? html`none` : html`<code>${bytes.toString('hex')}</code>`;
  return html`<h3>${verdict.authentic ? 'What the document says' : 'What the document claims'}</h3>
<dl><dt>Module id</dt><dd><code>${document.moduleId}</code></dd>
<dt>Made at</dt><dd>${rfc3339(document.timestamp)}</dd>
<dt>User data</dt><dd>${hex(document.userData)}</dd>
<dt>Nonce</dt><dd>${hex(document.nonce)}</dd>
<dt>Public key</dt><dd>${hex(document.publicKey)}</dd></dl>`;
}

function registerTable(registers: readonly RegisterReport[]): Html | undefined {
  if (registers.length === 0) return undefined;
  const isQuiet = ({ value, accepted }: RegisterReport): boolean => isZero(value) && accepted.length === 0;
  const zero = registers.filter(isQuiet);
  return html`<h3>Registers, beside the reference values</h3>
<div class="scroll"><table><thead><tr><th>Register</th><th>Result</th><th>Of the document</th><th>Reference value</th></tr></thead>
<tbody>${registers
    .filter((register) => !isQuiet(register))
    .map(
      ({ index, holds, value, result, accepted }) =>
        html`<tr><th scope="row">PCR${index}<br><span class="note">${holds}</span></th>${resultCell(result)}<td data-label="Of the document">${value === undefined ? 'not in the document' : halves(value)}</td><td data-label="Reference value">${accepted.length === 0 ? 'none given' : accepted.map(halves)}</td></tr>
`,
    )}</tbody></table></div>
${zero.length === 0 ? undefined : html`<p class="note">Zero, and not compared: ${zero.map(({ index }) => `PCR${index}`).join(', ')}.</p>`}`;
}

function isZero(value: string | undefined): boolean {
  return value !== undefined && /^0+$/.test(value);
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
