// Decides whether an entry may follow what a transcript already says. A transcript begins once and ends once. Time does
// not go back. Every speaker was introduced. Digests and PCRs are those of its own ceremony.

import { extendedOnce } from '../../formats/register.ts';
import { type Ceremony, ceremonyDigest, InvalidCeremony, parseCeremony } from '../definition.ts';
import type { Entry, StartEntry } from './entries.ts';

/** Those of the platform: zeros are what an enclave in debug mode has. */
const IMAGE_REGISTERS = ['PCR0', 'PCR1', 'PCR2'];
const CEREMONY_REGISTER = 'PCR17';

/** @returns what is wrong, to follow "line N" */
export function meaningProblem(before: readonly Entry[], entry: Entry): string | undefined {
  const [first] = before;
  if ((first === undefined) !== (entry.entry === 'start'))
    return 'is out of place: the first line, and no other, is the start';
  if (before.at(-1)?.entry === 'end') return 'comes after the end';
  if (entry.entry === 'end') return undefined;
  const last = before.at(-1);
  if (last !== undefined && 'at' in last && entry.at < last.at)
    return `is of ${entry.at}, before the line before, ${last.at}`;
  if (entry.entry === 'start') return startProblem(entry);
  if (first?.entry !== 'start') return 'has no start';
  if (entry.entry === 'person') return personProblem(before, first, entry);
  if (entry.entry === 'statement') {
    return isIntroduced(before, entry.by) ? undefined : 'is a statement of somebody whom no line before introduces';
  }
  return entry.entry === 'pcrs' ? registersProblem(entry.registers, ceremonyOf(first)) : undefined;
}

/** @throws InvalidCeremony */
export function ceremonyOf({ ceremony }: StartEntry): Ceremony {
  return parseCeremony(ceremony);
}

/** specification/evidence.md#registers: what PCR17 of an image with this ceremony is, hex. */
export function ceremonyRegister(ceremony: Ceremony): string {
  return extendedOnce(ceremonyDigest(ceremony)).toString('hex');
}

function startProblem(entry: StartEntry): string | undefined {
  try {
    const digest = ceremonyDigest(ceremonyOf(entry)).toString('hex');
    return digest === entry.ceremony_digest_sha384 ? undefined : 'has a digest that is not that of its ceremony';
  } catch (error) {
    if (error instanceof InvalidCeremony) return 'has a ceremony that is not valid';
    throw error;
  }
}

function personProblem(
  before: readonly Entry[],
  { ceremony }: StartEntry,
  { name, recipient }: Extract<Entry, { entry: 'person' }>,
): string | undefined {
  if (isIntroduced(before, name)) return 'introduces somebody whom a line before introduces already';
  if (recipient === undefined) return undefined;
  if (!ceremony.root_token_recipients.includes(recipient)) return 'names a recipient that the ceremony has not';
  const taken = before.some((entry) => entry.entry === 'person' && entry.recipient === recipient);
  return taken ? 'names a recipient that is another person’s already' : undefined;
}

function isIntroduced(before: readonly Entry[], name: string): boolean {
  return before.some((entry) => entry.entry === 'person' && entry.name === name);
}

function registersProblem(registers: Readonly<Record<string, string>>, ceremony: Ceremony): string | undefined {
  if (registers['PCR0'] === undefined) return 'has no PCR0: without it no image is named';
  const open = IMAGE_REGISTERS.find((register) => /^0+$/.test(registers[register] ?? ''));
  if (open !== undefined) return `has zeros in ${open}, which an enclave in debug mode has`;
  const ours = registers[CEREMONY_REGISTER];
  if (ours === undefined || ours === ceremonyRegister(ceremony)) return undefined;
  return `has a ${CEREMONY_REGISTER} that is not that of this ceremony: the image was built with another one`;
}
