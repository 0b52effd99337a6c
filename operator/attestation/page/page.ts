// The report of a verification as one page that needs nothing else: the verdict first, then what was checked, skipped
// and refused, and every value beside what it was compared with. It is kept with an audit's records and printed.

import { FAILURES, type Failure } from '../../../common/attestation/failure.ts';
import { STEP_NAMES, type Step } from '../../../common/attestation/verify.ts';
import type { Html } from '../../../common/formats/html.ts';
import { EXIT_OF_VERDICT } from '../attestation-failure.ts';
import {
  coverageOf,
  decisive,
  type Finding,
  type Findings,
  PARENT_WRITES_TABLES,
  REGISTERS,
  rfc3339,
  sha256Of,
  TITLES,
  verdictOf,
} from '../report.ts';
import { embedded } from './embedded.ts';
import { capital, findingSections, resultCell } from './finding.ts';
import { html, reportPage } from './html.ts';
import { measuredSection } from './measured.ts';
import type { PageContext } from './page-context.ts';
import { SHORT_TITLES, STEP_MEANINGS, type Tone, UNKNOWN_SOURCES, VERDICT_WORDS } from './words.ts';

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
