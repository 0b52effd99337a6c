// Decides whether an entry may follow what a transcript already says. A transcript begins once and ends once. Time does
// not go back. Every speaker was introduced. Digests and PCRs are those of its own ceremony.

import { readKeyEvidence } from '../../common/attestation/key-evidence.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { type Ceremony, ceremonyDigest, InvalidCeremony, parseCeremony } from '../definition.ts';
import { deedProblem, lackingIn, type Person, peopleIn } from './day.ts';
import { type Entry, type MasterKeyEntry, nameSkeleton, type PersonEntry, type StartEntry } from './entries.ts';

/** Those of the platform: zeros are what an enclave in debug mode has. */
const IMAGE_REGISTERS = ['PCR0', 'PCR1', 'PCR2'];
const CEREMONY_REGISTER = 'PCR17';

export function meaningProblem(before: readonly Entry[], entry: Entry): string | undefined {
  const [first] = before;
  if ((first === undefined) !== (entry.entry === 'start'))
    return 'is out of place: the first line, and no other, is the start';
  if (before.at(-1)?.entry === 'end') return 'comes after the end';
  if (entry.entry === 'end') return endProblem(before, entry.complete);
  const last = before.at(-1);
  if (last !== undefined && 'at' in last && entry.at < last.at)
    return `is of ${entry.at}, before the line before, ${last.at}`;
  if (entry.entry === 'start') return startProblem(entry);
  if (first?.entry !== 'start') return 'has no start';
  if (entry.entry === 'person') return personProblem(before, first, entry);
  if (entry.entry === 'statement') return statementProblem(before, entry);
  if (entry.entry === 'master_key') return masterKeyProblem(entry, first);
  return entry.entry === 'pcrs' ? registersProblem(entry.registers, first) : undefined;
}

export function ceremonyOf({ ceremony }: StartEntry): Ceremony {
  return parseCeremony(ceremony);
}

/** Digests, hex: of the ceremony, and of the one before it, which it names. */
export function acceptedCeremonies(start: StartEntry): readonly string[] {
  const { previousCeremony } = ceremonyOf(start);
  return [start.ceremony_digest_sha384, ...(previousCeremony === undefined ? [] : [previousCeremony])];
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

/** A later line of the same person adds what no line before says of them, and takes nothing back. */
function personProblem(before: readonly Entry[], { ceremony }: StartEntry, entry: PersonEntry): string | undefined {
  const { name, role, recipient, custody_key: key } = entry;
  const people = peopleIn(before);
  const known = people.find((person) => person.name === name);
  if (known === undefined && people.some((person) => nameSkeleton(person.name) === nameSkeleton(name)))
    return 'introduces somebody whose name looks like that of somebody before';
  if (known !== undefined && (known.role !== role || !isAddition(known, entry)))
    return 'introduces somebody whom a line before introduces already';
  if (recipient !== undefined && !ceremony.root_token_recipients.includes(recipient))
    return 'names a recipient that the ceremony has not';
  if (recipient !== undefined && people.some((person) => person.recipient === recipient))
    return 'names a recipient that is another person’s already';
  if (key === undefined) return undefined;
  if (role !== 'custodian') return 'gives a custody key to somebody who is no custodian';
  if (key > ceremony.kms_keys.length) return 'names a custody key that the ceremony has not';
  return people.some(({ custodyKeys }) => custodyKeys.includes(key))
    ? 'names a custody key that has its custodian already'
    : undefined;
}

function isAddition(
  known: Person,
  { organization, identified_by: identifiedBy, recipient, custody_key: key }: PersonEntry,
) {
  const given = [
    [organization, known.organization],
    [identifiedBy, known.identifiedBy],
    [recipient, known.recipient],
  ] as const;
  const isNew = key !== undefined || given.some(([value]) => value !== undefined);
  return isNew && given.every(([value, earlier]) => value === undefined || earlier === undefined);
}

function statementProblem(before: readonly Entry[], { by, did }: Extract<Entry, { entry: 'statement' }>) {
  const speaker = peopleIn(before).find(({ name }) => name === by);
  if (speaker === undefined) return 'is a statement of somebody whom no line before introduces';
  return did === undefined ? undefined : deedProblem(speaker, did);
}

function endProblem(before: readonly Entry[], isComplete: boolean): string | undefined {
  if ((lackingIn(before).length === 0) === isComplete) return undefined;
  return isComplete ? 'calls a record complete that lacks what the day asks for' : 'calls a complete record incomplete';
}

/** What it states; whether that is proven, a verifier says who trusts a root (origin.ts). */
function masterKeyProblem({ evidence, record }: MasterKeyEntry, start: StartEntry): string | undefined {
  const last = readKeyEvidence(evidence)?.at(-1);
  if (last === undefined || !acceptedCeremonies(start).includes(last.ceremony))
    return 'has evidence of a master key of another ceremony';
  return last.record === record ? undefined : 'has evidence of another record than it names';
}

/** An image of the ceremony before may have made the key that this one wraps again. */
function registersProblem(registers: Readonly<Record<string, string>>, start: StartEntry): string | undefined {
  if (registers['PCR0'] === undefined) return 'has no PCR0: without it no image is named';
  const open = IMAGE_REGISTERS.find((register) => /^0+$/.test(registers[register] ?? ''));
  if (open !== undefined) return `has zeros in ${open}, which an enclave in debug mode has`;
  const ours = registers[CEREMONY_REGISTER];
  const known = acceptedCeremonies(start).map((digest) => extendedOnce(Buffer.from(digest, 'hex')).toString('hex'));
  if (ours === undefined || known.includes(ours)) return undefined;
  return `has a ${CEREMONY_REGISTER} that is not that of this ceremony: the image was built with another one`;
}
