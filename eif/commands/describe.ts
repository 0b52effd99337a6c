// `strongroom eif describe`: what an image holds and what will be measured of it, for whoever did not build it. Exit 1
// when its signature is not valid, or the configuration that is asked about is not the one baked in.

import { ceremonyBlock, ceremonyDigest } from '../../ceremony/definition.ts';
import { note } from '../../command-line/terminal.ts';
import { testOnlyStatements } from '../cmdline.ts';
import { describeImage, type ImageDescription, type RamdiskDescription } from '../describe.ts';
import { DESCRIBE } from '../descriptions/describe.ts';
import type { ReadEntry } from '../format/cpio.ts';
import type { SignatureCheck } from '../format/signature.ts';
import { BuildError, readInput } from '../inputs.ts';
import { sha256Hex } from '../measure.ts';
import { type Command, json, readArguments, rows } from './command.ts';
import { naming, readImageBytes } from './images.ts';

export const describeCommand: Command = {
  description: DESCRIBE,

  async run(argv, terminal) {
    const { stdout } = terminal;
    const { values, argument: path } = readArguments(argv, DESCRIBE, terminal);
    const { config: file } = values;
    const configuration = file === undefined ? undefined : readInput(file, 'the configuration');
    const described = naming(path, () => describeImage(readImageBytes(path), configuration));
    const { baked, compiled, signature } = described;
    stdout.write(values.json ? json(asJson(described)) : asTable(described));
    if (configuration !== undefined && compiled?.configuration === 'baked' && baked?.equals(configuration) !== true)
      throw new BuildError(`${file} is not the configuration that is baked in`);
    if (signature?.valid === false) note(terminal, 'strongroom: the signature is not valid');
    return signature?.valid === false ? 1 : 0;
  },
};

function asJson({ image, sha256, size, measurements, ramdisks, compiled, signature }: ImageDescription): unknown {
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
          subject: certificate.subject,
          certificate_sha256: sha256Hex(certificate.raw),
          not_before: certificate.validFromDate.toISOString(),
          not_after: certificate.validToDate.toISOString(),
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
  const { image, sha256, size, measurements, ramdisks, compiled, signature } = described;
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
    `Signature: ${signature === undefined ? 'none' : signatureLine(signature)}`,
    ...ramdisks.flatMap((ramdisk, at) => ['', `Ramdisk ${at + 1}`, ...filesOf(ramdisk)]),
  ];
  return `${lines.join('\n')}\n`;
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

function signatureLine(check: SignatureCheck): string {
  const { certificate } = check;
  const subject = certificate === undefined ? '' : `, ${printable(certificate.subject.replaceAll('\n', ', '))}`;
  return check.valid ? `valid${subject}` : `NOT VALID: ${check.problem}${subject}`;
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
