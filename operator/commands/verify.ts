// `strongroom operator verify`: judge attestation evidence, kept in a file or asked of a running enclave, and report
// every step. Exit 0 only when it is authentic and of the reference values (specification/operating.md#operator). It
// sends no token; settings and profiles play no part, so that what was asked for is on the command line.

import { painter } from '../../command-line/color.ts';
import { writeOutput } from '../../command-line/output-file.ts';
import { bounded } from '../../command-line/text.ts';
import { AttestationFailure } from '../attestation/attestation-failure.ts';
import { verifyCertificate } from '../attestation/certificate-evidence.ts';
import { type EvidenceFile, readEvidence } from '../attestation/evidence-file.ts';
import { htmlReport } from '../attestation/page/page.ts';
import type { AttestationPolicy } from '../attestation/peer-evidence.ts';
import { readReferenceRecord } from '../attestation/reference-record.ts';
import { readReferenceValues } from '../attestation/reference-values.ts';
import { decisive, type Findings, jsonReport, type ReportContext } from '../attestation/report.ts';
import { tableReport } from '../attestation/report-table.ts';
import { type VerifyOptions, verifyDocument } from '../attestation/verify.ts';
import type { LocalCall } from '../command.ts';
import { DEFAULT_MAX_AGE_SECONDS, DEFAULT_TIMEOUT_SECONDS } from '../common-flags.ts';
import { examine } from '../connect.ts';
import { connectionFailure } from '../connection-failure.ts';
import { createDeadline } from '../deadline.ts';
import type { verify } from '../descriptions/enclave.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { createOutput } from '../output.ts';
import { checkFile, explained } from '../output-file.ts';
import { readSeconds } from '../settings.ts';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;
const MAX_NONCE_BYTES = 1024;
const MAX_SUBJECT_CHARACTERS = 200;

export async function verifyEvidence({
  values,
  argument,
  terminal,
  provider,
}: LocalCall<typeof verify.flags>): Promise<void> {
  const referenceValues = readReferenceValues(
    flag('pcrs', values.pcrs),
    flag('pcr', values.pcr?.join(',')),
    values['any-configuration'],
  );
  const maxAgeSeconds = readSeconds(flag('max-age', values['max-age']), DEFAULT_MAX_AGE_SECONDS);
  const timeoutSeconds = readSeconds(flag('timeout-seconds', values['timeout-seconds']), DEFAULT_TIMEOUT_SECONDS);
  const now = Date.now();
  const { report, force } = values;
  if (report !== undefined) await checkFile(report, force);
  const nonce = readNonce(values.nonce);
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(argument);
  if (isUrl && (values.at !== undefined || values.nonce !== undefined)) {
    throw new UsageFailure('--at and --nonce are for a file: a running enclave is judged now, by a nonce made for it');
  }
  const at = values.at === undefined ? now : readTime(values.at);
  const policy = { provider, referenceValues, maxAgeSeconds };
  const live = { live: values.at === undefined };
  const findings = isUrl
    ? await findAtUrl(argument, { ...policy, now: Date.now }, timeoutSeconds)
    : findIn(await readEvidence(argument, terminal.stdin), {
        ...policy,
        at,
        ...live,
        nonce,
      });
  const subject = argument === '-' ? 'standard input' : bounded(argument, MAX_SUBJECT_CHARACTERS);
  const context: ReportContext = { subject, at, provider, referenceValues };
  const output = createOutput(values.json ? 'json' : 'table', terminal);
  output.answer({ value: findings, text: jsonReport(findings, context) }, () =>
    tableReport(findings, context, terminal.stdout, painter(terminal.stdout, terminal.env)),
  );
  const page = { ...context, madeAt: now, maxAgeSeconds, nonce, anyConfiguration: values['any-configuration'] };
  const record = values.pcrs === undefined ? undefined : readReferenceRecord(values.pcrs);
  const pcrsFile = values.pcrs === undefined ? undefined : bounded(values.pcrs, MAX_SUBJECT_CHARACTERS);
  if (report !== undefined) {
    const text = htmlReport(findings, { ...page, record, pcrsFile });
    await writeOutput(report, force, (file) => file.writeFile(text)).catch(explained(report));
  }
  const verdict = decisive(findings);
  if (!verdict.expected) throw new AttestationFailure(verdict, context.subject);
}

function findIn({ kind, bytes }: EvidenceFile, options: VerifyOptions): Findings {
  if (kind === 'document') return [{ evidence: 'document', verdict: verifyDocument(bytes, options) }];
  return [{ evidence: 'certificate', verdict: verifyCertificate(bytes, options).verdict }];
}

async function findAtUrl(written: string, attestation: AttestationPolicy, timeoutSeconds: number): Promise<Findings> {
  const url = readUrl(written);
  const deadline = createDeadline(timeoutSeconds);
  deadline.set();
  try {
    const { certificate, fresh } = await examine({ url, attestation }, deadline.signal);
    const first = { evidence: 'certificate', verdict: certificate } as const;
    return fresh === undefined ? [first] : [first, { evidence: 'fresh_document', verdict: fresh }];
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const peer = { url, attestation, trustedCertificates: undefined, serverName: undefined };
    throw connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone: false });
  } finally {
    deadline.end();
  }
}

function flag(name: string, text: string | undefined): { readonly text: string; readonly origin: string } | undefined {
  return text === undefined ? undefined : { text, origin: `--${name}` };
}

function readUrl(written: string): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const plain = url?.protocol === 'https:' && url.pathname === '/' && url.search === '' && url.username === '';
  if (url !== undefined && plain) return url;
  throw new UsageFailure('EVIDENCE: a URL is https: with a host and a port', 'for example https://signer.example:9443');
}

function readTime(written: string): number {
  const time = RFC3339.test(written) ? Date.parse(written) : Number.NaN;
  if (Number.isNaN(time)) throw new UsageFailure('--at is not a time of RFC 3339', 'for example 2026-01-03T20:41:07Z');
  return time;
}

function readNonce(written: string | undefined): Buffer | undefined {
  if (written === undefined) return undefined;
  const nonce = /^([0-9a-f]{2})+$/i.test(written) ? Buffer.from(written, 'hex') : undefined;
  if (nonce !== undefined && nonce.length <= MAX_NONCE_BYTES) return nonce;
  throw new UsageFailure(`--nonce is hex, at most ${MAX_NONCE_BYTES} bytes`);
}
