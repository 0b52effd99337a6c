// The report of a verification as one page that needs nothing else: the verdict first, then what was checked, skipped
// and refused, and every value beside what it was compared with. It is kept with an audit's records and printed.

import type { ChainCertificate } from '../../../common/attestation/chain.ts';
import { FAILURES, type Failure } from '../../../common/attestation/failure.ts';
import { STEP_NAMES, type Step } from '../../../common/attestation/verify.ts';
import type { Html } from '../../../common/formats/html.ts';
import { EXIT_OF_VERDICT } from '../attestation-failure.ts';
import {
  deploymentWords,
  KEY_VERDICTS,
  type KeyFinding,
  keyVerdict,
  linkFields,
  linkTitle,
  rowFields,
  rowTitle,
} from '../key-report.ts';
import {
  chainOf,
  coverageOf,
  decisive,
  type Finding,
  type Findings,
  PARENT_WRITES_TABLES,
  parentReadsWords,
  REGISTERS,
  type RegisterReport,
  registersOf,
  rfc3339,
  sha256Of,
  TITLES,
  verdictOf,
  verdictWithin,
} from '../report.ts';
import { embedded, embeddedKey } from './embedded.ts';
import { html, reportPage } from './html.ts';
import { halves, measuredSection } from './measured.ts';
import type { KeyPageContext, PageContext } from './page-context.ts';
import { RESULT_WORDS, SHORT_TITLES, STEP_MEANINGS, type Tone, UNKNOWN_SOURCES, VERDICT_WORDS } from './words.ts';

export function htmlReport(findings: Findings, context: PageContext): string {
  const { title } = VERDICT_WORDS[verdictOf(findings, context)];
  return reportPage({
    title: `${title}: ${context.subject}`,
    heading: 'strongroom: verification of an enclave’s evidence',
    body: html`${banner(findings, context)}
${circumstances(context)}
${outcome(findings)}
${measuredSection(findings, context)}
${findings.map((finding) => findingSections(finding, findings, context))}
${embedded(context)}`,
    madeAt: context.madeAt,
    rules:
      'The rules of every step are in docs/specification/evidence.md; docs/examples/verify.py judges the same evidence ' +
      'without strongroom.',
  });
}

function banner(findings: Findings, context: PageContext): Html {
  const name = verdictOf(findings, context);
  const { compared = [], notCompared = [] } = coverageOf(findings, context) ?? {};
  const { tone, sign, title, meaning } = VERDICT_WORDS[name];
  const steps = findings.flatMap((finding) => finding.verdict.steps);
  const count = (...results: readonly Step['result'][]) =>
    steps.filter(({ result }) => results.includes(result)).length;
  return html`<section class="verdict ${tone}" role="status">
${context.parentWritesTables === true ? html`<p class="bad"><b>UNSAFE</b>: ${PARENT_WRITES_TABLES}</p>` : undefined}
${readByParent(context.parentReads)}
<strong>${sign} ${title}</strong>
<p>${meaning}</p>
${decisive(findings).failures.map((failure) => html`<p class="bad">${failureWords(failure)}</p>`)}
${compared.length === 0 ? undefined : html`<p><b>Compared</b>: ${compared.join(', ')}</p>`}
${notCompared.map((open) => html`<p class="open"><b>NOT compared</b>: ${open}</p>`)}
${hasKnownSources(context) ? undefined : html`<p class="open"><b>Sources</b>: ${UNKNOWN_SOURCES}</p>`}
<ul class="counts">${[
    counted('good', count('passed'), 'steps passed'),
    counted('bad', count('failed'), 'refused'),
    counted('open', count('not_asked'), 'not asked'),
    counted('open', count('not_reached'), 'not reached'),
  ]}<li>exit code <b>${EXIT_OF_VERDICT[name]}</b></li></ul>
</section>`;
}

function circumstances({
  subject,
  at,
  provider,
  referenceValues,
  anyConfiguration,
  maxAgeSeconds,
  nonce,
  pcrsFile,
  record,
  evidence,
  referenceSha256,
}: PageContext): Html {
  const given =
    referenceValues === undefined ? 'none' : [...referenceValues.keys()].map((index) => `PCR${index}`).join(', ');
  const fields: readonly (readonly [string, Html | string | undefined])[] = [
    ['Evidence', subject],
    ...evidence.map(
      ({ kind, bytes }) =>
        [`SHA-256, ${SHORT_TITLES[kind].toLowerCase()}`, html`<code>${sha256Of(bytes)}</code>`] as const,
    ),
    ['Judged at', rfc3339(at)],
    ['Trust root', html`${provider.name}, SHA-256 <code>${provider.rootSha256}</code>`],
    ['Reference values', anyConfiguration ? `${given}; any configuration is accepted` : given],
    ['of the file', pcrsFile],
    ['its SHA-256', referenceSha256 === undefined ? undefined : html`<code>${referenceSha256}</code>`],
    ['built from commit', record?.commit === undefined ? undefined : html`<code>${record.commit}</code>`],
    ['by strongroom', record?.version],
    ['image, SHA-256', record?.imageSha256 === undefined ? undefined : html`<code>${record.imageSha256}</code>`],
    ['Oldest accepted', `${maxAgeSeconds} s`],
    ['Nonce asked for', nonce === undefined ? undefined : html`<code>${nonce.toString('hex')}</code>`],
  ];
  const shown = fields.filter(([, value]) => value !== undefined);
  return html`<h2>What was judged, and by what</h2>
<dl>${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function hasKnownSources({ record }: PageContext): boolean {
  return record?.commit === undefined || /^[0-9a-f]{40}$/.test(record.commit);
}

function counted(tone: Tone, count: number, words: string): Html {
  return html`<li class="${count === 0 ? 'note' : tone}"><b>${count}</b> ${words}</li>
`;
}

function outcome(findings: Findings): Html {
  const refused = findings.filter(({ verdict }) => verdict.failures.length > 0);
  return html`<h2>What was checked, skipped and refused</h2>
<div class="scroll"><table><thead><tr><th>Step</th><th>Makes sure that</th>${findings.map(({ evidence }) => html`<th>${SHORT_TITLES[evidence]}</th>`)}</tr></thead>
<tbody>${STEP_NAMES.map(
    (name) =>
      html`<tr><th scope="row">${name}</th><td class="wide">${STEP_MEANINGS[name]}</td>${findings.map(({ evidence, verdict }) => resultCell(verdict.steps.find((step) => step.name === name)?.result ?? 'not_reached', SHORT_TITLES[evidence]))}</tr>
`,
  )}</tbody></table></div>
${refused.map(refusal)}`;
}

function refusal({ evidence, verdict }: Finding): Html {
  const step = verdict.steps.find(({ result }) => result === 'failed');
  const [first] = verdict.failures;
  const advice = first === undefined ? undefined : adviceFor(first.code);
  return html`<h3>Refused: ${TITLES[evidence]}, ${step === undefined ? 'before the first step' : `step ${step.name}`}</h3>
<ul>${verdict.failures.map((failure) => html`<li>${failureWords(failure)}</li>`)}</ul>
${advice === undefined ? undefined : html`<p class="note">${capital(advice)}.</p>`}`;
}

/** A register's value stands beside its reference values further down. */
function failureWords({ code, detail, pcr }: Failure): Html {
  const what = pcr === undefined ? detail : `PCR${pcr} (${REGISTERS[pcr] ?? 'not one of ours'})`;
  return html`<b>${code}</b>: ${FAILURES[code].meaning}: ${what}`;
}

function adviceFor(code: Failure['code']): string | undefined {
  const entry = FAILURES[code];
  return 'advice' in entry ? entry.advice : undefined;
}

// The report of a master key's evidence as one page: the verdict first, then every enclave that made or wrapped the
// key, with its registers beside the accepted ones. It is kept with an audit's records and printed.

export function keyPage(finding: KeyFinding, context: KeyPageContext): string {
  const verdict = keyVerdict(finding);
  const { tone, sign, title } = VERDICT_WORDS[verdict];
  const { links, rows, refusal } = finding.origin;
  const [first] = links;
  const body = html`<section class="verdict ${tone}" role="status">
${finding.parentWritesTables ? html`<p class="bad"><b>UNSAFE</b>: ${PARENT_WRITES_TABLES}</p>` : undefined}
${readByParent(finding.parentReads)}
<strong>${sign} ${title}</strong>
<p>${capital(KEY_VERDICTS[verdict])}.</p>
${refusal === undefined ? undefined : html`<p class="bad"><b>${refusal.fault}</b>: ${refusal.detail}</p>`}
<ul class="counts"><li class="good"><b>${links.length}</b> links proven</li><li>exit code <b>${EXIT_OF_VERDICT[verdict]}</b></li></ul>
</section>
<h2>What was judged, and by what</h2>
<dl><dt>Evidence</dt><dd>${context.subject}</dd>
<dt>SHA-256</dt><dd><code>${sha256Of(context.status)}</code></dd>
<dt>Judged at</dt><dd>the time of each document</dd>
<dt>Trust root</dt><dd>${context.provider.name}, SHA-256 <code>${context.provider.rootSha256}</code></dd>
${first === undefined ? undefined : html`<dt>Deployment</dt><dd>${deploymentWords(first)}</dd>`}
${context.given.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
${links.map((link) => section(linkTitle(link), linkFields(link)))}
${rows.map((row) => section(rowTitle(row), rowFields(row)))}
${embeddedKey(context, finding)}`;
  return reportPage({
    title: `${title}: ${context.subject}`,
    heading: 'strongroom: where a master key comes from',
    body,
    madeAt: context.madeAt,
    rules:
      'The rules are in docs/specification/evidence.md; docs/examples/verify_key.py judges the same evidence without ' +
      'strongroom.',
  });
}

function section(title: string, fields: readonly (readonly [string, string])[]): Html {
  return html`<h2>${capital(title)}</h2>
<dl>${fields.map(([name, value]) => html`<dt>${capital(name)}</dt><dd><code>${value}</code></dd>`)}</dl>`;
}

// One piece of evidence on the report's page: its steps, its chain with the window of each certificate, its members and
// its registers beside the reference values.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** From here on a year says more than a count of days. */
const FAR_MS = 2 * 365 * DAY_MS;

function findingSections(finding: Finding, findings: Findings, context: PageContext): Html {
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
function resultCell(result: string, label = 'Result'): Html {
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

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function readByParent(options: readonly string[] = []): Html | undefined {
  return options.length === 0
    ? undefined
    : html`<p class="open"><b>The parent reads</b>: ${parentReadsWords(options)}</p>`;
}
