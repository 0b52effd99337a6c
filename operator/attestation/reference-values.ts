// Reference values as an operator gives them: a pcrs.json, single registers, or both. Values that leave the
// configuration open (no PCR16) are refused unless that is asked for.

import { readFileSync, statSync } from 'node:fs';
import { CONFIGURATION_PCR } from '../../common/attestation/contract.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import {
  combineReferenceValues,
  parseReferenceFile,
  parseRegisters,
  ReferenceValueError,
} from '../../common/attestation/reference-file.ts';
import { bounded } from '../../common/command-line/text.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PATH_CHARACTERS = 200;

export interface GivenText {
  readonly text: string;
  readonly origin: string;
}

/**
 * @param registers `N=HEX`, with commas between them
 * @param anyConfiguration PCR16 may be missing; one that is there counts all the same
 * @returns undefined when neither is given @throws CommandFailure
 */
export function readReferenceValues(
  file: GivenText | undefined,
  registers: GivenText | undefined,
  anyConfiguration: boolean,
): ReferenceValues | undefined {
  if (file === undefined && registers === undefined) return undefined;
  const ofFile = file === undefined ? new Map() : readReferenceFile(file);
  const single =
    registers === undefined ? new Map() : explained(registers.origin, () => parseRegisters(registers.text.split(',')));
  const origins = [file?.origin, registers?.origin].filter((origin) => origin !== undefined);
  const values = explained(origins.join(' and '), () => combineReferenceValues(ofFile, single));
  if (!values.has(CONFIGURATION_PCR) && !anyConfiguration) throw configurationMissing(origins.join(' and '));
  return values;
}

function configurationMissing(origins: string): UsageFailure {
  return new UsageFailure(
    `${origins}: PCR${CONFIGURATION_PCR} is missing: the image would be accepted with any configuration`,
    `give it with --pcr ${CONFIGURATION_PCR}=HEX (\`strongroom parent-proxy --check\` and \`eif describe --config\` print it), or say --any-configuration`,
  );
}

function readReferenceFile({ text: path, origin }: GivenText): ReferenceValues {
  const place = `${origin}: ${bounded(path, MAX_PATH_CHARACTERS)}`;
  let content: Buffer;
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes`);
    content = readFileSync(path);
  } catch (error) {
    throw unreadable(place, error);
  }
  return explained(place, () => parseReferenceFile(content));
}

function unreadable(place: string, error: unknown): unknown {
  const code = errorCode(error);
  return code === undefined ? error : fileFailure(place, 'read', code);
}

function explained<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReferenceValueError)) throw error;
    throw new UsageFailure(
      `${place}: ${error.message}`,
      'pcrs.json is as `strongroom eif build` or nitro-cli writes it; a register is N=HEX',
    );
  }
}
