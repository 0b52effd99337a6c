// Reference values as people write them: pcrs.json of `strongroom eif build` or of nitro-cli, and N=HEX. Values that
// only an enclave without measurement has are refused as values to expect. An image reads none.

import { bounded } from '../command-line/text.ts';
import { PCR_BYTES } from '../formats/register.ts';
import { parseStrictJson } from '../formats/strict-json.ts';
import { PCR_COUNT } from './contract.ts';
import { IMAGE_PCRS, type ReferenceValues } from './policy.ts';

export const MAX_ACCEPTED_VALUES = 16;

export class ReferenceValueError extends Error {}

/** @param bytes the content of a pcrs.json @throws ReferenceValueError */
export function parseReferenceFile(bytes: Uint8Array): ReferenceValues {
  const parsed = parseStrictJson(bytes);
  if (parsed.kind === 'refused') throw new ReferenceValueError('this is no JSON, or it names a member twice');
  const file = parsed.value as Readonly<Record<string, unknown>> | null;
  // `strongroom eif build` writes the one, nitro-cli the other.
  const measurements = file?.['measurements'] ?? file?.['Measurements'];
  if (typeof measurements !== 'object' || measurements === null || Array.isArray(measurements)) {
    throw new ReferenceValueError('there is no object `measurements` (nor `Measurements`, as nitro-cli writes it)');
  }
  const entries = Object.entries(measurements).filter(([name]) => name !== 'HashAlgorithm');
  const values = new Map(entries.map(([name, value]) => [readIndex(/^PCR(\d{1,2})$/.exec(name)?.[1], name), value]));
  return new Map([...values].map(([index, value]) => [index, readAccepted(index, value)]));
}

/** @param written each `N=HEX`; a register given several times accepts each @throws ReferenceValueError */
export function parseRegisters(written: readonly string[]): ReferenceValues {
  const values = new Map<number, string[]>();
  for (const text of written) {
    const [, register, value = ''] = /^(?:PCR)?(\d{1,2})=(.*)$/.exec(text) ?? [];
    const index = readIndex(register, text);
    values.set(index, [...(values.get(index) ?? []), value]);
  }
  return new Map([...values].map(([index, accepted]) => [index, readAccepted(index, accepted)]));
}

/** Registers that were given one by one stand in place of those of the file. @throws ReferenceValueError */
export function combineReferenceValues(file: ReferenceValues, single: ReferenceValues): ReferenceValues {
  const combined = new Map([...file, ...single].sort(([a], [b]) => a - b));
  if (!combined.has(0)) throw new ReferenceValueError('PCR0 is missing: without it no image is named');
  return combined;
}

function readIndex(digits: string | undefined, written: string): number {
  const index = Number(digits);
  if (digits === undefined || index >= PCR_COUNT || digits !== String(index)) {
    throw new ReferenceValueError(`${bounded(written, 60)} does not name a register, PCR0 to PCR${PCR_COUNT - 1}`);
  }
  return index;
}

function readAccepted(index: number, written: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(written) ? written : [written];
  if (list.length === 0 || list.length > MAX_ACCEPTED_VALUES) {
    throw new ReferenceValueError(`PCR${index} has ${list.length} values; it has 1 to ${MAX_ACCEPTED_VALUES}`);
  }
  return list.map((value) => {
    if (typeof value !== 'string' || !/^[0-9a-f]{96}$/i.test(value)) {
      throw new ReferenceValueError(`PCR${index}: a value is not ${PCR_BYTES} bytes of hex`);
    }
    if (IMAGE_PCRS.includes(index) && /^0+$/.test(value)) {
      throw new ReferenceValueError(`PCR${index}: zeros are what an enclave in debug mode has, and accept no image`);
    }
    return value.toLowerCase();
  });
}
