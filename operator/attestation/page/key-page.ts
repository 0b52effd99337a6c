// The report of a master key's evidence as one page: the verdict first, then every enclave that made or wrapped the
// key, with its registers beside the accepted ones. It is kept with an audit's records and printed.

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
import { PARENT_WRITES_TABLES, sha256Of } from '../report.ts';
import { embeddedKey } from './embedded-key.ts';
import { capital } from './finding.ts';
import { html, reportPage } from './html.ts';
import type { KeyPageContext } from './page-context.ts';
import { VERDICT_WORDS } from './words.ts';

export function keyPage(finding: KeyFinding, context: KeyPageContext): string {
  const verdict = keyVerdict(finding);
  const { tone, sign, title } = VERDICT_WORDS[verdict];
  const { links, rows, refusal } = finding.origin;
  const [first] = links;
  const body = html`<section class="verdict ${tone}" role="status">
${finding.parentWritesTables ? html`<p class="bad"><b>UNSAFE</b>: ${PARENT_WRITES_TABLES}</p>` : undefined}
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
${embeddedKey(context, finding.parentWritesTables)}`;
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
