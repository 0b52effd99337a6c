// `strongroom eif compare IMAGE --reference FILE`: is it the image that was published? The verdict comes from the
// bytes of the image; the records only say what to expect, and which inputs differ.

import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { type Shown, wrapFor } from '../../common/command-line/wrap.ts';
import { describeImage } from '../describe.ts';
import { type Input, readImageInput } from '../inputs.ts';
import type { ImageMeasurements } from '../measure.ts';
import { type PublishedRecord, readPublishedRecord } from '../record.ts';
import { naming, readImageBytes } from './images.ts';
import { json } from './text.ts';

interface ReferenceFlags {
  readonly reference: string;
  readonly record: string | undefined;
  readonly config: string | undefined;
  readonly json: boolean;
}

interface Comparison {
  readonly published: PublishedRecord;
  readonly registers: readonly ComparedRegister[];
  readonly isSame: boolean;
  /** Also where nothing is measured; undefined: the record does not say. */
  readonly isSameFile: boolean | undefined;
  readonly inputs: readonly InputDifference[] | undefined;
}

const MAX_SHOWN_CHARACTERS = 200;
const UNKNOWN_SOURCES =
  'SOURCES UNKNOWN: the record names no commit, sources that were changed since, or packages that were not compared ' +
  'with the lockfile: nobody else can build this image';

/** @returns the exit code @throws BuildError */
export function comparedWithReference(path: string, flags: ReferenceFlags, { stdout }: Printed): ExitCode {
  const comparison = compare(path, flags);
  stdout.write(flags.json ? json(asJson(comparison)) : asTable(comparison, stdout));
  if (!comparison.isSame) return EXIT.failed;
  return hasKnownSources(comparison.published) ? EXIT.ok : EXIT.unknownSources;
}

/** A commit, of which everybody may have the sources, and the packages that its lockfile names. */
function hasKnownSources({ commit, packages }: PublishedRecord): boolean {
  return commit !== undefined && /^[0-9a-f]{40}$/.test(commit) && packages === 'verified';
}

function compare(path: string, { reference, record, config }: ReferenceFlags): Comparison {
  const published = readPublishedRecord(reference);
  const own = record === undefined ? undefined : readPublishedRecord(record);
  const configuration = config === undefined ? undefined : readImageInput(config, 'the configuration');
  const { measurements, sha256 } = naming(path, () => describeImage(readImageBytes(path), configuration));
  const registers = compareWithRecord(measurements, published);
  return {
    published,
    registers,
    isSame: registers.every(({ result }) => result !== 'different'),
    isSameFile: published.image === undefined ? undefined : published.image.sha256 === sha256,
    inputs:
      own?.inputs === undefined || published.inputs === undefined
        ? undefined
        : compareInputs(own.inputs, published.inputs),
  };
}

function asJson({ published, registers, isSame, isSameFile, inputs }: Comparison): unknown {
  return {
    equal: isSame,
    same_file: isSameFile ?? null,
    commit: published.commit ?? null,
    known_sources: hasKnownSources(published),
    registers: registers.map(({ name, result, own, published: values, why }) => {
      return { register: name, result, own: own ?? null, published: values, ...(why === undefined ? {} : { why }) };
    }),
    inputs_that_differ:
      inputs?.map(({ path, own, published: theirs }) => ({ path, own: own ?? null, published: theirs ?? null })) ??
      null,
  };
}

function asTable(comparison: Comparison, stdout: Shown): string {
  const { published, registers, inputs } = comparison;
  const lines = [
    ...wrapFor(stdout, verdict(comparison)),
    `Published: commit ${shown(published.commit ?? 'not named')}, strongroom ${shown(published.tool?.strongroom ?? 'of a version not named')}`,
    ...(hasKnownSources(published) ? [] : wrapFor(stdout, UNKNOWN_SOURCES)),
    '',
    ...registers.flatMap(registerLines),
    ...(inputs === undefined ? [] : ['', ...inputLines(inputs)]),
  ];
  return `${lines.join('\n')}\n`;
}

function verdict({ isSame, isSameFile, inputs }: Comparison): string {
  if (!isSame) {
    const hint = inputs === undefined ? '; --record FILE, your own pcrs.json, shows which inputs differ' : '';
    return `DIFFERENT: this is not the image that was published${hint}`;
  }
  if (isSameFile === false)
    return 'equal: the image that was published; the files differ where nothing is measured (signature or metadata)';
  return `equal: the image that was published${isSameFile === true ? ', byte for byte' : ''}`;
}

/** `PCR0   equal` and its value on a line by itself, as every command prints a register. */
function registerLines({ name, result, own, published, why }: ComparedRegister): string[] {
  const label = name.padEnd(6);
  if (result === 'equal') return [`${label} ${own}`, '       equal'];
  if (result === 'not_compared') return [`${label} not compared: ${why}`];
  return [`${label} ${own ?? 'not known'}`, ...published.map((value) => `       DIFFERENT, published ${value}`)];
}

function inputLines(inputs: readonly InputDifference[]): string[] {
  if (inputs.length === 0) return ['All inputs are the same.'];
  return [
    `Inputs that differ: ${inputs.length}`,
    ...inputs.flatMap(({ path, own, published }) => [
      `  ${shown(path)}`,
      `    yours      ${own ?? 'not among the inputs'}`,
      `    published  ${published ?? 'not among the inputs'}`,
    ]),
  ];
}

/** A record may come from anybody. */
function shown(text: string): string {
  return bounded(text, MAX_SHOWN_CHARACTERS);
}

// Whether an image is the one that a pcrs.json names, and which files of two builds differ. What cannot be rebuilt, or
// what is not known yet, is not compared, and said so.

interface ComparedRegister {
  readonly name: string;
  readonly result: 'equal' | 'different' | 'not_compared';
  readonly own: string | undefined;
  readonly published: readonly string[];
  readonly why?: string;
}

interface InputDifference {
  readonly path: string;
  readonly own: string | undefined;
  readonly published: string | undefined;
}

const NOT_COMPARED: Readonly<Record<string, string>> = {
  PCR8: 'your image is not signed; it is of the certificate, and of nothing that is built',
  PCR16: 'your image fetches its configuration: give it with --config',
};
const OF_IMAGE = /^PCR(?:0|1|2|8|16|17)$/;

function compareWithRecord(own: ImageMeasurements, { measurements }: PublishedRecord): ComparedRegister[] {
  const names = [...new Set([...Object.keys(own), ...Object.keys(measurements)])];
  names.sort((a, b) => Number(a.slice(3)) - Number(b.slice(3)));
  return names.map((name) => {
    const written = measurements[name] ?? [];
    const published = (typeof written === 'string' ? [written] : written).map((value) => value.toLowerCase());
    const value = own[name];
    const why = reasonNotTo(name, value, published);
    if (why !== undefined) return { name, result: 'not_compared', own: value, published, why };
    const equal = value !== undefined && published.includes(value);
    return { name, result: equal ? 'equal' : 'different', own: value, published };
  });
}

function reasonNotTo(name: string, own: string | undefined, published: readonly string[]): string | undefined {
  if (published.length === 0) return 'the record does not have it';
  if (!OF_IMAGE.test(name)) return 'it is not of an image';
  return own === undefined ? NOT_COMPARED[name] : undefined;
}

/** By path; the first of two builds' libraries that differ is usually what makes the rest differ. */
function compareInputs(own: readonly Input[], published: readonly Input[]): InputDifference[] {
  const [ours, theirs] = [own, published].map((inputs) => new Map(inputs.map(({ path, sha256 }) => [path, sha256])));
  const paths = [...new Set([...(ours?.keys() ?? []), ...(theirs?.keys() ?? [])])];
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return paths
    .map((path) => ({ path, own: ours?.get(path), published: theirs?.get(path) }))
    .filter((one) => one.own !== one.published);
}
