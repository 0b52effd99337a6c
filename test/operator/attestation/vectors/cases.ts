// The cases of test/vectors/verification-v1.json as they are collected: a piece of evidence, what it is judged by, and
// the verdict that docs/specification/evidence.md gives it.

import { testPcr } from '../../../../rehearsal/nsm/emulator.ts';
import { CEREMONY, CONFIGURATION, document, hex, type Made, NOW, OTHER } from './evidence.ts';

export interface Case {
  readonly name: string;
  readonly evidence: string;
  readonly judged_at: string;
  readonly max_age_seconds: number;
  readonly nonce: string | null;
  readonly reference_values: string | null;
  readonly verdict: 'expected' | 'partly_compared' | 'not_expected' | 'no_reference_values' | 'not_authentic';
  readonly step: string | null;
  readonly codes: readonly string[];
  readonly root_sha256?: string;
  /** Reference values without PCR16 are taken; left out for nearly all. */
  readonly any_configuration?: boolean;
}

export type Circumstances = Partial<
  Pick<Case, 'max_age_seconds' | 'nonce' | 'reference_values' | 'root_sha256' | 'any_configuration'>
> & {
  readonly at?: number;
};

export interface Evidence {
  readonly form: 'document' | 'certificate';
  readonly base64: string;
}

const image = { PCR0: hex(testPcr(0)), PCR1: hex(testPcr(1)), PCR2: hex(testPcr(2)), PCR8: hex(testPcr(8)) };
export const referenceValues: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>> = {
  all: { ...image, PCR16: hex(CONFIGURATION), PCR17: hex(CEREMONY) },
  rollout: { PCR0: [OTHER, hex(testPcr(0))], PCR16: hex(CONFIGURATION).toUpperCase() },
  another_image: { PCR0: OTHER, PCR16: hex(CONFIGURATION) },
  another_configuration_and_ceremony: { ...image, PCR16: OTHER, PCR17: OTHER },
  the_digest_in_place_of_the_register: { ...image, PCR16: hex(testPcr(16)) },
  sixteen_values: {
    PCR0: [...Array.from({ length: 15 }, (_, at) => hex(testPcr(40 + at))), hex(testPcr(0))],
    PCR16: hex(CONFIGURATION),
  },
  without_configuration: { ...image, PCR17: hex(CEREMONY) },
  register_31: { PCR0: hex(testPcr(0)), PCR16: hex(CONFIGURATION), PCR31: hex(testPcr(31)) },
  two_registers_in_descending_order: { PCR17: OTHER, PCR16: OTHER, PCR0: hex(testPcr(0)) },
  a_register_that_is_not_there: { PCR0: hex(testPcr(0)), PCR16: hex(CONFIGURATION), PCR20: OTHER },
};

export const evidence: Record<string, Evidence> = {};
export const cases: Case[] = [];

/** Every step passes: a document by itself names no key, and who gives no value of a register compares none. */
function inWhatWasCompared(of: string, table: string | null): Case['verdict'] {
  const given = Object.keys(table === null ? {} : (referenceValues[table] ?? {}));
  const isWhole = evidence[of]?.form === 'certificate' && given.includes('PCR16') && given.includes('PCR17');
  return isWhole ? 'expected' : 'partly_compared';
}

function judged(
  name: string,
  [outcome, step, ...codes]: readonly [Case['verdict'], string | null, ...string[]],
  { at = NOW, max_age_seconds = 10_800, nonce = null, reference_values = 'all', ...others }: Circumstances,
  of: string,
): void {
  const verdict = outcome === 'expected' ? inWhatWasCompared(of, reference_values) : outcome;
  const judged_at = new Date(at).toISOString();
  cases.push({
    ...{ name, evidence: of, judged_at, max_age_seconds, nonce, reference_values, verdict, step, codes },
    ...others,
  });
}

export const EXPECTED = ['expected', null] as const;
export const refused = (step: string | null, code: string) => ['not_authentic', step, code] as const;
export type Outcome = Parameters<typeof judged>[1];

export async function add(name: string, made: Made | Buffer, outcome: Outcome, how: Circumstances = {}): Promise<void> {
  const bytes = Buffer.isBuffer(made) ? made : await document(made);
  evidence[name] = { form: 'document', base64: bytes.toString('base64') };
  judged(name, outcome, how, name);
}

export function again(name: string, of: string, outcome: Outcome, how: Circumstances): void {
  judged(name, outcome, how, of);
}

export async function certify(
  name: string,
  der: Promise<Buffer>,
  outcome: Outcome,
  how: Circumstances = {},
): Promise<void> {
  evidence[name] = { form: 'certificate', base64: (await der).toString('base64') };
  judged(name, outcome, how, name);
}
