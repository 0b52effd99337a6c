// The PCR values of a pcrs.json, as `strongroom eif build` and nitro-cli write it, one value a register.

import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { type CeremonyTerminal, CommandError } from './command.ts';
import { readCeremonyInput } from './input.ts';

export async function readRegisters(file: string, terminal: CeremonyTerminal): Promise<Record<string, string>> {
  const parsed = parseStrictJson(Buffer.from(await readCeremonyInput(file, terminal)));
  if (parsed.kind === 'refused') throw new CommandError(`${file} is no JSON, or it names a member twice`);
  const whole = parsed.value as Readonly<Record<string, unknown>> | null;
  const measurements = whole?.['measurements'] ?? whole?.['Measurements'];
  if (typeof measurements !== 'object' || measurements === null) {
    throw new CommandError(`${file} has no object "measurements", nor "Measurements" as nitro-cli writes it`);
  }
  const entries = Object.entries(measurements).filter(([name]) => name !== 'HashAlgorithm');
  return Object.fromEntries(entries.map(([name, value]) => [name, registerValue(file, name, value)]));
}

function registerValue(file: string, name: string, value: unknown): string {
  if (/^PCR\d{1,2}$/.test(name) && typeof value === 'string' && /^[0-9a-f]{96}$/i.test(value))
    return value.toLowerCase();
  throw new CommandError(`${file}: a member of the measurements is no register with 48 bytes of hex`);
}
