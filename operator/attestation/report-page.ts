// The pages of `operator verify --report`, as data: the verdict first, then what a terminal shows, too, and every value
// next to the one it was compared with. What cannot be seen of a text, or turns the writing direction, is spelled out.

import { CEREMONY_PCR, CONFIGURATION_PCR, type DocumentProvider } from '../../common/attestation/contract.ts';
import { keySections } from '../../common/attestation/key-sections.ts';
import type { Tone } from '../../common/command-line/paint.ts';
import { type Fields, type PageSection, reportPage, type Value } from '../../common/command-line/report-page.ts';
import { printable } from '../../common/command-line/text.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { VERSION } from '../../signer/api/version.ts';
import { EXIT_OF_VERDICT } from './attestation-failure.ts';
import { embedded, type MasterKeyPage, type VerificationPage } from './kept-page.ts';
import { KEY_VERDICTS, type KeyFinding, keyHead, keyVerdict } from './key-report.ts';
import { decisive, type Findings, rfc3339, VERDICTS, type VerdictName, verdictOf } from './report.ts';
import { coverFields, exact, failureField, reportHead, reportWarnings, sectionsOf } from './report-sections.ts';

const TONES: Readonly<Record<VerdictName, Tone>> = {
  ...{ expected: 'good', partly_compared: 'doubtful', no_reference_values: 'doubtful' },
  ...{ not_expected: 'bad', not_authentic: 'bad' },
};
const UNKNOWN_SOURCES =
  'the reference file names no commit, or one whose sources were changed (-modified): no other person can build this image';
export function verificationPage(findings: Findings, page: VerificationPage, provider: DocumentProvider): string {
  const { record, referenceValues } = page;
  const context = { ...page, provider };
  const verdict = verdictOf(findings, context);
  const isOfOtherSources = record?.commit !== undefined && !/^[0-9a-f]{40}$/.test(record.commit);
  const registers = [...(referenceValues?.keys() ?? [])].map((index) => `PCR${index}`);
  return pageOf(page, verdict, {
    tone: isOfOtherSources && verdict === 'expected' ? 'doubtful' : TONES[verdict],
    said: [
      ...decisive(findings).failures.map(failureField),
      ...coverFields(findings, context),
      ...(isOfOtherSources ? [['sources', UNKNOWN_SOURCES] as const] : []),
    ],
    judged: [
      ...reportHead(context),
      ['reference values', [registers.join(', ') || 'none', ...(page.anyConfiguration ? ['any configuration'] : [])]],
      ['of the file', page.pcrsFile],
      ['its SHA-256', exact(page.referenceSha256)],
      ['built from commit', exact(record?.commit)],
      ['by strongroom', record?.version],
      ['image, SHA-256', exact(record?.imageSha256)],
      ['configuration, SHA-384', measured(findings, CONFIGURATION_PCR, record?.configurationDigest)],
      ['ceremony, SHA-384', measured(findings, CEREMONY_PCR, record?.ceremonyDigest)],
      ['oldest accepted', `${page.maxAgeSeconds} s`],
      ['nonce asked for', exact(page.nonce)],
    ],
    sections: findings.flatMap((finding) => sectionsOf(finding, findings, context)),
  });
}

/** @param digest of the reference file: PCR = SHA-384(48 zero bytes ‖ digest) */
function measured(findings: Findings, index: number, digest: string | undefined): Value {
  const verdict = decisive(findings);
  if (digest === undefined) return undefined;
  if (!verdict.authentic) return [exact(digest), `PCR${index}: not evaluated`];
  const follows = verdict.document.pcrs.get(index)?.equals(extendedOnce(Buffer.from(digest, 'hex'))) === true;
  const words = follows ? 'follows from this digest' : 'does NOT follow from this digest';
  return [exact(digest), { tone: follows ? 'good' : 'bad', text: `PCR${index} ${words}` }];
}

export function masterKeyPage(finding: KeyFinding, page: MasterKeyPage, provider: DocumentProvider): string {
  const verdict = keyVerdict(finding);
  const { links, refusal } = finding.origin;
  return pageOf(page, verdict, {
    tone: TONES[verdict],
    said: [
      ...(refusal === undefined ? [] : [[refusal.fault, refusal.detail] as const]),
      ['master key', KEY_VERDICTS[verdict]],
      ['links proven', links.length],
    ],
    judged: [...keyHead(finding, { ...page, provider }), ['SHA-256', exact(page.sha256)], ...page.given],
    sections: keySections(finding.origin),
  });
}

interface PageContent {
  readonly tone: Tone;
  readonly said: Fields;
  readonly judged: Fields;
  readonly sections: readonly PageSection[];
}

function pageOf(
  page: VerificationPage | MasterKeyPage,
  verdict: VerdictName,
  { tone, said, judged, sections }: PageContent,
): string {
  const title = VERDICTS[verdict];
  const last: Fields = [
    ['carries', 'what was judged, and by what: `strongroom operator verify` of this page judges it again'],
    ['does not prove', 'what docs/guides/attestation.md says that no attestation proves'],
    ['made', `${rfc3339(page.madeAt)}, by strongroom ${VERSION}`],
  ];
  return reportPage({
    title: `${title}: ${page.subject}`,
    heading: 'strongroom: verification of evidence',
    sections: [
      ...reportWarnings(page).map(([name, text]) => ({ title: name, box: 'bad' as const, notes: [text] })),
      { title, box: tone, fields: [...said, ['exit code', EXIT_OF_VERDICT[verdict]]] },
      { title: 'what was judged, and by what', fields: judged },
      ...sections,
      { title: 'this page', fields: last, evidence: embedded(page) },
    ],
    shown: printable,
  });
}
