// `strongroom eif describe`: what an image holds and what will be measured of it, for a reader who did not build it.
// Exit 1 when its signature is not valid, or the configuration that is asked about is not the one baked in.

import { X509Certificate } from 'node:crypto';
import { ceremonyBlock, ceremonyDigest } from '../../ceremony/definition.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { command } from '../../common/command-line/program.ts';
import { note, type Printed } from '../../common/command-line/terminal.ts';
import type { Compiled } from '../bundle/compiled-module.ts';
import { describeImage, type ImageDescription, type RamdiskDescription } from '../describe.ts';
import type { ReadEntry } from '../format/cpio.ts';
import type { SignatureCheck } from '../format/signature.ts';
import { BuildError, readImageInput } from '../inputs.ts';
import { sha256Hex } from '../measure.ts';
import { naming, readImageBytes } from './images.ts';
import { json, rows } from './text.ts';

export const describeCommand = command(
  {
    summary: 'Print what an image holds and what will be measured of it',
    notes: [
      "Everything is computed from the image's bytes. Exit 1 when its signature is not valid, or FILE is not the " +
        'configuration baked in.',
    ],
    argument: { name: 'IMAGE', meaning: 'An image file' },
    flags: {
      config: {
        placeholder: 'FILE',
        meaning: 'The configuration that the image will fetch: adds PCR16; or the one that should be baked in',
      },
      ...JSON_OUTPUT,
    },
    examples: [
      'strongroom eif describe build/image/image.eif',
      'strongroom eif describe image.eif --config strongroom.yaml --json',
    ],
  },

  async ({ values, argument: path }, terminal: Printed) => {
    const { stdout } = terminal;
    const { config: file } = values;
    const configuration = file === undefined ? undefined : readImageInput(file, 'the configuration');
    const described = naming(path, () => describeImage(readImageBytes(path), configuration));
    const { baked, compiled, signature } = described;
    stdout.write(values.json ? json(asJson(described)) : asTable(described));
    if (configuration !== undefined && compiled?.configuration === 'baked' && baked?.equals(configuration) !== true)
      throw new BuildError(`${file} is not the configuration that is baked in`);
    if (signature?.valid === false) note(terminal, 'strongroom: the signature is not valid');
    return signature?.valid === false ? EXIT.failed : EXIT.ok;
  },
);

function asJson(described: ImageDescription): unknown {
  const { image, sha256, size, measurements, ramdisks, compiled, sources, signature } = described;
  return {
    architecture: image.architecture,
    sha256,
    size,
    measurements,
    sections: sectionsOf({ image, ramdisks }),
    cmdline: image.cmdline.toString('latin1'),
    test_only: testOnlyStatements(image.cmdline.toString('latin1')),
    ceremony:
      compiled === undefined
        ? null
        : { digest_sha384: ceremonyDigest(compiled.ceremony).toString('hex'), block: ceremonyBlock(compiled.ceremony) },
    configuration: compiled?.configuration ?? null,
    authorities: compiled === undefined ? null : Object.fromEntries(authoritiesOf(compiled)),
    sources: sources ?? null,
    signature: signature === undefined ? null : signatureOf(signature),
    files: ramdisks.map((ramdisk) => (ramdisk.readable ? ramdisk.entries.map(entryOf) : { problem: ramdisk.problem })),
  };
}

interface Section {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

function sectionsOf({ image }: Pick<ImageDescription, 'image' | 'ramdisks'>): Section[] {
  const section = (name: string, data: Buffer | undefined): Section[] =>
    data === undefined ? [] : [{ name, size: data.length, sha256: sha256Hex(data) }];
  return [
    ...section('kernel', image.kernel),
    ...section('cmdline', image.cmdline),
    ...section('metadata', image.metadata),
    ...image.ramdisks.flatMap((data, at) => section(`ramdisk ${at + 1}`, data)),
    ...section('signature', image.signature),
  ];
}

function signatureOf(check: SignatureCheck): Readonly<Record<string, unknown>> {
  const { certificate } = check;
  return {
    valid: check.valid,
    ...(check.valid ? {} : { problem: check.problem }),
    ...(certificate === undefined
      ? {}
      : {
          subject: subjectOf(certificate),
          certificate_sha256: sha256Hex(certificate.raw),
          not_before: iso(certificate.validFromDate),
          not_after: iso(certificate.validToDate),
        }),
  };
}

function entryOf(entry: ReadEntry): Readonly<Record<string, unknown>> {
  const { path, type, mode } = entry;
  return {
    path,
    type,
    mode: mode.toString(8).padStart(4, '0'),
    ...(entry.type === 'file' ? { size: entry.data.length, sha256: sha256Hex(entry.data) } : {}),
    ...(entry.type === 'symlink' ? { target: entry.target } : {}),
    ...(entry.type === 'character-device' ? { device: `${entry.major}:${entry.minor}` } : {}),
  };
}

function asTable(described: ImageDescription): string {
  const { image, sha256, size, measurements, ramdisks, compiled, sources, signature } = described;
  const lines = [
    `Enclave image for ${image.architecture}, ${size} bytes, SHA-256 ${sha256}`,
    '',
    'Measurements',
    ...rows(Object.entries(measurements)),
    '',
    'Sections',
    ...sectionsOf(described).map((one) => `  ${one.name.padEnd(10)} ${String(one.size).padStart(10)}  ${one.sha256}`),
    '',
    `Command line: ${printable(image.cmdline.toString('latin1'))}`,
    ...testOnlyLine(image.cmdline.toString('latin1')),
    ceremonyLine(compiled),
    configurationLine(described),
    ...authorityLines(compiled),
    `Signature: ${signature === undefined ? 'none' : signatureLine(signature)}`,
    ...ramdisks.flatMap((ramdisk, at) => ['', `Ramdisk ${at + 1}`, ...filesOf(ramdisk)]),
    '',
    ...sourceLines(sources),
  ];
  return `${lines.join('\n')}\n`;
}

/** The image says it of itself: who builds it again knows it. */
function sourceLines(sources: ImageDescription['sources']): string[] {
  if (sources === undefined) return ['Own sources: no list that can be read'];
  const head = `Own sources: ${sources.length} files, as the image says; a reproduction of the image shows it`;
  return [head, ...sources.map(({ path, sha256 }) => `  ${sha256}  ${path}`)];
}

function testOnlyLine(cmdline: string): string[] {
  const statements = testOnlyStatements(cmdline);
  return statements.length === 0 ? [] : [`For tests only: ${printable(statements.join('; '))}`];
}

function ceremonyLine(compiled: ImageDescription['compiled']): string {
  if (compiled === undefined) return 'Ceremony: none that can be read; this is no image of this version of strongroom';
  const { ceremony } = compiled;
  const { generation, kmsThreshold, kmsKeys } = ceremony;
  return `Ceremony: generation ${generation}, ${kmsThreshold} of ${kmsKeys.length} custody keys, digest (SHA-384) ${ceremonyDigest(ceremony).toString('hex')}`;
}

function configurationLine({ compiled, baked, measurements }: ImageDescription): string {
  if (compiled === undefined) return 'Configuration: not known';
  if (compiled.configuration === 'baked') {
    return baked === undefined
      ? 'Configuration: baked in, and MISSING'
      : `Configuration: baked in, SHA-256 ${sha256Hex(baked)}`;
  }
  const known = measurements['PCR16'] === undefined ? '; give it with --config to see its PCR16' : '';
  return `Configuration: fetched from the parent at boot${known}`;
}

interface Authority {
  readonly subject: string;
  readonly sha256: string;
}

function authoritiesOf({ authorities }: Compiled): readonly (readonly [string, readonly Authority[]])[] {
  return [...authorities].map(([host, pems]) => {
    const certificates = pems.map((pem) => new X509Certificate(pem));
    return [host, certificates.map((one) => ({ subject: subjectOf(one), sha256: sha256Hex(one.raw) }))];
  });
}

function authorityLines(compiled: ImageDescription['compiled']): string[] {
  if (compiled === undefined) return ['Authorities: not known'];
  return [
    "Authorities: Amazon's roots, except for the hosts that follow",
    ...authoritiesOf(compiled).flatMap(([host, authorities]) => [
      `  ${printable(host)}: these alone`,
      ...authorities.map((one) => `    ${one.sha256}  ${printable(one.subject.replaceAll('\n', ', '))}`),
    ]),
  ];
}

function signatureLine(check: SignatureCheck): string {
  const { certificate } = check;
  const subject = certificate === undefined ? '' : `, ${printable(subjectOf(certificate).replaceAll('\n', ', '))}`;
  return check.valid ? `valid${subject}` : `NOT VALID: ${check.problem}${subject}`;
}

/** Node has no subject for an empty name, whatever its types say. */
function subjectOf({ subject }: { readonly subject: string | undefined }): string {
  return subject ?? 'a certificate without a name';
}

function iso(date: Date): string | null {
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function filesOf(ramdisk: RamdiskDescription): string[] {
  if (!ramdisk.readable) return [`  its files cannot be listed: ${ramdisk.problem}`];
  return ramdisk.entries.map((entry) => {
    const size = entry.type === 'file' ? String(entry.data.length) : '';
    return `  ${entry.mode.toString(8).padStart(4, '0')} ${size.padStart(10)}  ${contentsOf(entry).padEnd(64)}  ${printable(entry.path)}`;
  });
}

function contentsOf(entry: ReadEntry): string {
  if (entry.type === 'file') return sha256Hex(entry.data);
  if (entry.type === 'symlink') return `-> ${printable(entry.target)}`;
  return entry.type === 'directory' ? 'directory' : `device ${entry.major}:${entry.minor}`;
}

/** An image may come from anybody: nothing in it moves the terminal's cursor. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?');
}

// What the command line of an image says to its init (eif/init/settings.c), for an auditor of the image: it is measured
// in PCR0 and PCR1, so a word there is a statement that clients can refuse. No image for Nitro needs any.

const NITRO_PARENT_CID = '3';
const PARENT_CID = /(?:^| )strongroom\.parent_cid=(\S*)/;
const UNSIGNED_EVIDENCE = /(?:^| )strongroom\.evidence=unsigned(?: |$)/;

/** Statements that no image for Nitro makes, one a line; none: it is one for Nitro. */
export function testOnlyStatements(cmdline: string): readonly string[] {
  const cid = PARENT_CID.exec(cmdline)?.[1] ?? NITRO_PARENT_CID;
  return [
    ...(cid === NITRO_PARENT_CID ? [] : [`its parent is CID ${cid}, not ${NITRO_PARENT_CID}`]),
    ...(UNSIGNED_EVIDENCE.test(cmdline) ? ['its evidence is unsigned: no client and no key policy believes it'] : []),
  ];
}
