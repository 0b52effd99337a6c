// `operator verify` of a signer's status: the evidence of its master key (specification/evidence.md#shown). What the
// key has to be is said whole or not at all: under the right image, a key of another ceremony or deployment is another
// key. It is alone because evidence in documents and URLs (verify.ts) has none of these terms.

import { readCeremonyFile } from '../../ceremony/commands/ceremony-file.ts';
import { CommandError } from '../../ceremony/commands/command.ts';
import { type Ceremony, ceremonyDigest, isDeploymentId, isNetwork } from '../../ceremony/definition.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import { judgeShownEvidence } from '../../common/attestation/shown-evidence.ts';
import type { Flags, Values } from '../../common/command-line/command.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { writeOutput } from '../../common/command-line/output-file.ts';
import { painter } from '../../common/command-line/paint.ts';
import { bounded } from '../../common/command-line/text.ts';
import { type StatusEvidence, statusIn } from '../attestation/evidence-file.ts';
import { MASTER_KEY_FORMAT, type MasterKeyPage } from '../attestation/kept-page.ts';
import {
  demandExpected,
  type KeyFinding,
  type KeyTerms,
  keyJson,
  keyTable,
  originTerms,
} from '../attestation/key-report.ts';
import { sha256Of } from '../attestation/report.ts';
import { masterKeyPage } from '../attestation/report-page.ts';
import { DISAGREES } from '../attestation/report-sections.ts';
import type { LocalCall } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { createOutput } from '../output.ts';
import { explained } from '../output-file.ts';

const MAX_CHARACTERS = 200;

/** Flags that only the verification of a status has, besides --pcrs: they say which master key is the right one. */
export const TERMS = {
  ceremony: { placeholder: 'FILE', meaning: 'For the status of a signer: the ceremony that its key has to be of' },
  deployment: {
    placeholder: 'ID',
    meaning: 'For a status: signer_state.deployment_id, or the name of the state table',
  },
  network: { placeholder: '0xROOT', meaning: 'For a status: the genesis validators root of its network' },
} as const satisfies Flags;

interface Call extends Omit<LocalCall<typeof TERMS>, 'values'> {
  readonly values: Values<typeof TERMS> & {
    readonly pcrs: string | undefined;
    readonly pcr: readonly string[] | undefined;
    readonly at: string | undefined;
    readonly nonce: string | undefined;
    readonly json: boolean;
    readonly report: string | undefined;
    readonly force: boolean;
  };
}

interface StatusTerms {
  readonly referenceValues: ReferenceValues | undefined;
  /** Undefined: no configuration was given. */
  readonly parentWritesTables: boolean | undefined;
  readonly parentReads: readonly string[] | undefined;
}

interface KeptStatus {
  readonly file: StatusEvidence;
  /** Of a page: whether it says what its own evidence and terms give. */
  readonly agrees?: boolean;
}

/** @throws CommandFailure for every verdict but "expected" */
export async function verifyStatus(
  { file, agrees }: KeptStatus,
  { values, argument, terminal, provider }: Call,
  { referenceValues, parentWritesTables, parentReads }: StatusTerms,
): Promise<void> {
  if (values.at !== undefined || values.nonce !== undefined)
    throw new UsageFailure('--at and --nonce are not for a status: each of its documents is judged at its own time');
  const terms = await readTerms(values, referenceValues);
  const given = originTerms(terms);
  const subject = argument === '-' ? 'standard input' : bounded(argument, MAX_CHARACTERS);
  const context = { subject, provider, ...(agrees === undefined ? {} : { pageAgrees: agrees }) };
  const finding: KeyFinding = {
    origin: judgeShownEvidence(file.shown, provider, given),
    terms: given,
    parentWritesTables: file.parentWritesTables || parentWritesTables === true,
    parentReads,
  };
  createOutput(values.json ? 'json' : 'table', terminal).answer(
    { value: finding, text: keyJson(finding, context) },
    () => keyTable(finding, context, terminal.stdout, painter(terminal.stdout, terminal.env)),
  );
  const { report, force } = values;
  if (report !== undefined) {
    const { parentWritesTables: isUnsafe } = finding;
    const status = { sha256: sha256Of(file.bytes), status: file.bytes };
    const own = { format: MASTER_KEY_FORMAT, subject, madeAt: Date.now(), parentWritesTables: isUnsafe, parentReads };
    const text = masterKeyPage(finding, { ...own, given: givenIn(values), terms, ...status }, provider);
    await writeOutput(report, force, (opened) => opened.writeFile(text)).catch(explained(report));
  }
  if (agrees === false) throw new CommandFailure(EXIT.failed, `the page ${subject} ${DISAGREES}`);
  demandExpected(finding, subject);
}

/** @param text of the page */
export function keptKey(page: MasterKeyPage, text: string, provider: Call['provider']): KeptStatus {
  const terms = originTerms(page.terms);
  const { parentWritesTables = false, parentReads } = page;
  const file = statusIn(page.status, 'its evidence');
  if (file === undefined)
    throw new CommandFailure(EXIT.evidenceNotAuthentic, 'the page is refused: its evidence is no status');
  const finding = { origin: judgeShownEvidence(file.shown, provider, terms), terms, parentWritesTables, parentReads };
  return { file, agrees: masterKeyPage(finding, page, provider) === text };
}

/** @throws UsageFailure for flags that only a status has */
export function refuseStatusFlags({ ceremony, deployment, network }: Call['values']): void {
  if ([ceremony, deployment, network].some((value) => value !== undefined))
    throw new UsageFailure('--ceremony, --deployment and --network are for the status of a signer');
}

async function readTerms(
  { ceremony: file, deployment: id, network }: Call['values'],
  referenceValues: ReferenceValues | undefined,
): Promise<KeyTerms | undefined> {
  if (referenceValues === undefined || file === undefined || id === undefined || network === undefined) {
    if ([referenceValues, file, id, network].every((value) => value === undefined)) return undefined;
    throw new UsageFailure(
      'which key is the right one is said by --pcrs, --ceremony, --deployment and --network, all four',
    );
  }
  if (!isNetwork(network)) throw new UsageFailure('--network is 0x and 64 characters of hex in lower case');
  if (!isDeploymentId(id)) throw new UsageFailure('--deployment has characters that no deployment has');
  const ceremony = await readCeremony(file);
  const digest = ceremonyDigest(ceremony).toString('hex');
  const ceremonies = [digest, ...(ceremony.previousCeremony === undefined ? [] : [ceremony.previousCeremony])];
  return { deployment: { network, id }, ceremonies, images: referenceValues };
}

async function readCeremony(file: string): Promise<Ceremony> {
  try {
    return await readCeremonyFile(file);
  } catch (error) {
    if (error instanceof CommandError) throw new UsageFailure(`--ceremony: ${error.message}`);
    throw error;
  }
}

function givenIn({ pcrs, pcr, ceremony, deployment, network }: Call['values']): MasterKeyPage['given'] {
  return Object.entries({ pcrs, pcr: pcr?.join(' '), ceremony, deployment, network }).flatMap(([name, value]) =>
    value === undefined ? [] : [[`--${name}`, value] as const],
  );
}
