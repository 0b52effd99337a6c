// `strongroom operator verify`. It sends no token; settings and profiles play no part, so that what was asked for is on
// the command line.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import { verifyDocument } from '../../common/attestation/verify.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { writeOutput } from '../../common/command-line/output-file.ts';
import { painter } from '../../common/command-line/paint.ts';
import { bounded } from '../../common/command-line/text.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import { AttestationFailure, partlyCompared } from '../attestation/attestation-failure.ts';
import { verifyCertificate } from '../attestation/certificate-evidence.ts';
import { readEvidence } from '../attestation/evidence-file.ts';
import {
  type MasterKeyPage,
  readKeptPage,
  VERIFICATION_FORMAT,
  type VerificationPage,
} from '../attestation/kept-page.ts';
import { type AttestationPolicy, verifyFresh } from '../attestation/peer-evidence.ts';
import { readReferenceRecord } from '../attestation/reference-record.ts';
import { readReferenceValues } from '../attestation/reference-values.ts';
import {
  coverageOf,
  decisive,
  type Findings,
  type JudgedEvidence,
  jsonReport,
  type ReportContext,
  sha256Of,
} from '../attestation/report.ts';
import { verificationPage } from '../attestation/report-page.ts';
import { DISAGREES, tableReport } from '../attestation/report-sections.ts';
import { localCommand } from '../command.ts';
import { COMMON_FLAGS, DEFAULT_MAX_AGE_SECONDS, DEFAULT_TIMEOUT_SECONDS } from '../common-flags.ts';
import { examine } from '../connect.ts';
import { connectionFailure } from '../connection-failure.ts';
import { createDeadline } from '../deadline.ts';
import { CommandFailure, localFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';
import { createOutput } from '../output.ts';
import { checkFile, explained } from '../output-file.ts';
import { readSeconds } from '../settings.ts';
import { keptKey, refuseStatusFlags, TERMS, verifyStatus } from './verify-status.ts';

const MAX_SUBJECT_CHARACTERS = 200;

export const verify = localCommand(
  {
    summary: 'Verify attestation evidence of an enclave and report every step',
    flags: {
      pcrs: { placeholder: 'FILE', meaning: 'Reference values: pcrs.json of the image' },
      pcr: { placeholder: 'N=HEX', meaning: 'One reference value; repeat for others', repeatable: true },
      config: {
        placeholder: 'FILE',
        meaning:
          'The configuration that the enclave is to have: its PCR16 is the reference value, and the report says what is unsafe in it',
      },
      'any-configuration': COMMON_FLAGS['any-configuration'],
      ...TERMS,
      at: { placeholder: 'TIME', meaning: 'Judge a file as of this time, RFC 3339; now when not given' },
      nonce: { placeholder: 'HEX', meaning: 'The nonce that the document in a file has to carry' },
      'max-age': {
        placeholder: 'SECONDS',
        meaning: `The oldest document accepted; ${DEFAULT_MAX_AGE_SECONDS} when not given`,
      },
      ...JSON_OUTPUT,
      report: {
        placeholder: 'FILE',
        isOutputFile: true,
        meaning: 'Write the report as a page too, to keep and to print (HTML)',
      },
      force: { meaning: 'Replace the file of --report' },
      'timeout-seconds': {
        placeholder: 'SECONDS',
        meaning: `Give up on a URL after so long; ${DEFAULT_TIMEOUT_SECONDS}`,
      },
    },
    notes: [
      'The status of a signer holds the evidence of its master key: who made it, when, by which measurements, in which ' +
        'generation, and who wrapped it since. It is judged by --pcrs (of every image that may have done it), --ceremony, ' +
        '--deployment and --network, all four, and each document at its own time.',
    ],
    argument: {
      name: 'EVIDENCE',
      meaning:
        'A file (a document, a PEM certificate with one, what operator status --json prints, or a page of --report), - (stdin), or an https: URL',
    },
    examples: [
      'verify https://signer.example:9443 --pcrs pcrs.json --pcr 16=4b8d…',
      'verify document.bin --pcrs pcrs.json --at 2026-01-03T20:41:07Z --json',
    ],
  },

  async ({ values, argument, terminal, provider }) => {
    const { report, force } = values;
    if (report !== undefined) await checkFile(report, force);
    const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(argument);
    if (isUrl && (values.at !== undefined || values.nonce !== undefined)) {
      throw new UsageFailure(
        '--at and --nonce are for a file: a running enclave is judged now, by a nonce made for it',
      );
    }
    const configuration = values.config === undefined ? undefined : readReferenceConfiguration(values.config);
    const { parentWritesTables, parentReads } = configuration ?? NO_CONFIGURATION;
    const referenceValues = readReferenceValues(
      flag('pcrs', values.pcrs),
      flag('pcr', registersGiven(values.pcr, configuration)),
      // Of those that made a key, the configuration is shown and not compared.
      values['any-configuration'] || values.ceremony !== undefined,
    );
    const file = isUrl ? undefined : await readEvidence(argument, terminal.stdin);
    const page = file?.kind === 'page' ? keptIn(file.text, argument) : undefined;
    const key =
      file?.kind === 'page' && page !== undefined && 'status' in page ? keptKey(page, file.text, provider) : undefined;
    const status = file?.kind === 'status' ? { file } : key;
    if (status !== undefined) {
      return verifyStatus(
        status,
        { values, argument, terminal, provider },
        { referenceValues, parentWritesTables, parentReads },
      );
    }
    refuseStatusFlags(values);
    const kept = page !== undefined && 'evidence' in page ? page : undefined;
    if (kept !== undefined) refuseOtherTerms(values, kept);
    const defaultMaxAge = kept?.maxAgeSeconds ?? DEFAULT_MAX_AGE_SECONDS;
    const maxAgeSeconds = readSeconds(flag('max-age', values['max-age']), defaultMaxAge);
    const timeoutSeconds = readSeconds(flag('timeout-seconds', values['timeout-seconds']), DEFAULT_TIMEOUT_SECONDS);
    const now = Date.now();
    const nonce = kept === undefined ? readNonce(values.nonce) : kept.nonce;
    const at = kept?.at ?? (values.at === undefined ? now : readTime(values.at));
    const policy = { provider, referenceValues, maxAgeSeconds };
    const given =
      file === undefined || file.kind === 'page' || file.kind === 'status'
        ? undefined
        : { ...file, sha256: sha256Of(file.bytes), at, live: values.at === undefined, nonce };
    const { findings, evidence } =
      kept !== undefined
        ? judgeKept(kept.evidence, policy)
        : given === undefined
          ? await findAtUrl(argument, { ...policy, now: Date.now }, timeoutSeconds)
          : judgeKept([given], policy);
    const subject = argument === '-' ? 'standard input' : bounded(argument, MAX_SUBJECT_CHARACTERS);
    const referenceSha256 = values.pcrs === undefined ? undefined : sha256Of(readFileSync(values.pcrs));
    const judged = { subject, at, referenceValues, parentWritesTables, parentReads, evidence, referenceSha256 };
    const pageAgrees = kept && file?.kind === 'page' ? isAsWritten(kept, file.text, provider) : undefined;
    const context: ReportContext = { ...judged, provider, pageAgrees };
    const output = createOutput(values.json ? 'json' : 'table', terminal);
    output.answer({ value: findings, text: jsonReport(findings, context) }, () =>
      tableReport(findings, context, terminal.stdout, painter(terminal.stdout, terminal.env)),
    );
    if (report !== undefined) {
      const own = {
        format: VERIFICATION_FORMAT,
        madeAt: now,
        maxAgeSeconds,
        nonce,
        anyConfiguration: values['any-configuration'],
      };
      const record = values.pcrs === undefined ? undefined : readReferenceRecord(values.pcrs);
      const pcrsFile = values.pcrs === undefined ? undefined : bounded(values.pcrs, MAX_SUBJECT_CHARACTERS);
      const text = verificationPage(findings, { ...judged, ...own, record, pcrsFile }, provider);
      await writeOutput(report, force, (opened) => opened.writeFile(text)).catch(explained(report));
    }
    const verdict = decisive(findings);
    if (pageAgrees === false) throw new CommandFailure(EXIT.failed, `the page ${argument} ${DISAGREES}`);
    if (!verdict.expected) throw new AttestationFailure(verdict, context.subject);
    const { notCompared = [] } = coverageOf(findings, context) ?? {};
    if (notCompared.length > 0) throw partlyCompared(context.subject, notCompared);
  },
);

/** @throws CommandFailure */
function keptIn(text: string, argument: string): VerificationPage | MasterKeyPage {
  const page = readKeptPage(text);
  if (typeof page !== 'string') return page;
  const subject = bounded(argument, MAX_SUBJECT_CHARACTERS);
  throw new CommandFailure(EXIT.evidenceNotAuthentic, `the page ${subject} is refused: ${page}`);
}

/** What is written again of the page's own evidence and terms is the page, or its words are not those. */
function isAsWritten(page: VerificationPage, text: string, provider: DocumentProvider): boolean {
  const { findings } = judgeKept(page.evidence, { ...page, provider, referenceValues: page.referenceValues });
  return verificationPage(findings, page, provider) === text;
}

/** A page is judged by its own time and nonce, which may be said again. @throws UsageFailure for others */
function refuseOtherTerms(
  given: { readonly at?: string | undefined; readonly nonce?: string | undefined },
  of: VerificationPage,
) {
  const isOtherTime = given.at !== undefined && readTime(given.at) !== of.at;
  const isOtherNonce = given.nonce !== undefined && given.nonce.toLowerCase() !== of.nonce?.toString('hex');
  if (!isOtherTime && !isOtherNonce) return;
  throw new UsageFailure(
    'a page is judged by its own time and nonce, and --at or --nonce says another',
    `leave them out: this page is of ${new Date(of.at).toISOString()}`,
  );
}

interface Judged {
  readonly findings: Findings;
  readonly evidence: readonly JudgedEvidence[];
}

/** @param evidence a document, a certificate, or a certificate and the fresh document that its peer showed */
function judgeKept(evidence: readonly JudgedEvidence[], policy: Omit<AttestationPolicy, 'now'>): Judged {
  const [first, second] = evidence;
  if (first === undefined) throw new Error('no evidence');
  const { provider, referenceValues, maxAgeSeconds } = policy;
  const options = { provider, referenceValues, maxAgeSeconds, at: first.at, live: first.live, nonce: first.nonce };
  if (first.kind !== 'certificate')
    return { evidence: [first], findings: [{ evidence: 'document', verdict: verifyDocument(first.bytes, options) }] };
  const { verdict, evidence: shown } = verifyCertificate(first.bytes, options);
  const certificate = { evidence: 'certificate', verdict } as const;
  if (second === undefined || shown === undefined) return { evidence, findings: [certificate] };
  const fresh = verifyFresh(second, { provider, referenceValues, maxAgeSeconds }, shown);
  return { evidence, findings: [certificate, { evidence: 'fresh_document', verdict: fresh }] };
}

async function findAtUrl(written: string, attestation: AttestationPolicy, timeoutSeconds: number): Promise<Judged> {
  const url = readUrl(written);
  const deadline = createDeadline(timeoutSeconds);
  deadline.set();
  try {
    const { certificate, fresh, judged: evidence } = await examine({ url, attestation }, deadline.signal);
    const first = { evidence: 'certificate', verdict: certificate } as const;
    return {
      evidence,
      findings: fresh === undefined ? [first] : [first, { evidence: 'fresh_document', verdict: fresh }],
    };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const peer = { url, attestation, trustedCertificates: undefined, serverName: undefined };
    throw connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone: false });
  } finally {
    deadline.end();
  }
}

// What is read from the command line besides files: times, nonces, URLs and reference values.

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;
const MAX_NONCE_BYTES = 1024;

/** PCR16 is that of the file, and of nothing else that is said. */
function registersGiven(
  registers: readonly string[] | undefined,
  configuration: ReferenceConfiguration | undefined,
): string | undefined {
  if (configuration === undefined) return registers?.join(',');
  if (registers?.some((register) => register.startsWith('16=')) === true) {
    throw new UsageFailure('--config and --pcr 16=HEX both say what PCR16 is', 'give one of them');
  }
  return [...(registers ?? []), `16=${configuration.pcr16}`].join(',');
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

// The configuration that an enclave is to have, as a file that the auditor holds: PCR16 covers its exact bytes, so that
// a register that is equal shows that the enclave runs with what is read here.

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PATH_CHARACTERS = 200;

interface ReferenceConfiguration {
  readonly pcr16: string;
  readonly parentWritesTables: boolean;
  readonly parentReads: readonly string[];
}

const NO_CONFIGURATION = { parentWritesTables: undefined, parentReads: undefined };

function readReferenceConfiguration(path: string): ReferenceConfiguration {
  const place = `--config: ${bounded(path, MAX_PATH_CHARACTERS)}`;
  const bytes = bytesOf(path, place);
  const document = parseStrictYaml(bytes.toString('utf8'));
  if ('problems' in document) throw new UsageFailure(`${place} is not a configuration of strongroom: it is no YAML`);
  return {
    pcr16: extendedOnce(createHash('sha384').update(bytes).digest()).toString('hex'),
    parentWritesTables: memberOf(document.value, 'tee', 'nitro', 'unsafe_parent_writes_tables') === true,
    parentReads: secretsIn(document.value),
  };
}

/** As the start warns of them (signer/config/warnings.ts). */
function secretsIn(configuration: unknown): readonly string[] {
  const isList = (...path: readonly string[]): boolean => {
    const list = memberOf(configuration, ...path);
    return Array.isArray(list) && list.length > 0;
  };
  const url = memberOf(configuration, 'anti_slashing', 'url');
  return [
    ...(isList('static_auth', 'tokens') ? ['static_auth.tokens'] : []),
    ...(isList('static_auth', 'anonymous', 'policies') ? ['static_auth.anonymous'] : []),
    ...(typeof url === 'string' && URL.canParse(url) && new URL(url).password !== '' ? [DATABASE_PASSWORD] : []),
  ];
}

const DATABASE_PASSWORD = 'anti_slashing.url (its password)';

function bytesOf(path: string, place: string): Buffer {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(path);
  } catch (error) {
    const code = errorCode(error);
    throw code === undefined ? error : fileFailure(place, 'read', code);
  }
}

function memberOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Readonly<Record<string, unknown>>)[name]
        : undefined,
    value,
  );
}
