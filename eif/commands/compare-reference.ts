// `strongroom eif compare IMAGE --reference FILE`: is it the image that was published? The verdict comes from the
// bytes of the image; the records only say what to expect, and which inputs differ.

import { EXIT } from '../../command-line/exit-codes.ts';
import type { Printed } from '../../command-line/terminal.ts';
import { bounded } from '../../command-line/text.ts';
import { type Shown, wrapFor } from '../../command-line/wrap.ts';
import { type ComparedRegister, compareInputs, compareWithRecord, type InputDifference } from '../compare-record.ts';
import { describeImage } from '../describe.ts';
import { readInput } from '../inputs.ts';
import { type PublishedRecord, readPublishedRecord } from '../record.ts';
import { json } from './command.ts';
import { naming, readImageBytes } from './images.ts';

export interface ReferenceFlags {
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
  /** undefined: no two records to compare. */
  readonly inputs: readonly InputDifference[] | undefined;
}

const MAX_SHOWN_CHARACTERS = 200;

/** @returns the exit code @throws BuildError */
export function comparedWithReference(path: string, flags: ReferenceFlags, { stdout }: Printed): number {
  const comparison = compare(path, flags);
  stdout.write(flags.json ? json(asJson(comparison)) : asTable(comparison, stdout));
  return comparison.isSame ? EXIT.ok : EXIT.failed;
}

function compare(path: string, { reference, record, config }: ReferenceFlags): Comparison {
  const published = readPublishedRecord(reference);
  const own = record === undefined ? undefined : readPublishedRecord(record);
  const configuration = config === undefined ? undefined : readInput(config, 'the configuration');
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
