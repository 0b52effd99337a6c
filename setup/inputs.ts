// What the commands read: the configuration as the signer reads it, the ceremony definition that it names, and the
// measurements of images. Files are read and nothing is called. For what is missing the refusal says where to get it.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import {
  type Ceremony,
  type Deployment,
  deploymentOf,
  InvalidCeremony,
  parseCeremony,
} from '../ceremony/definition.ts';
import { readCeremonyValue } from '../ceremony/yaml.ts';
import { CEREMONY_PCR, CONFIGURATION_PCR } from '../common/attestation/contract.ts';
import type { ReferenceValues } from '../common/attestation/policy.ts';
import {
  combineReferenceValues,
  parseReferenceFile,
  parseRegisters,
  ReferenceValueError,
} from '../common/attestation/reference-file.ts';
import { fileFault } from '../common/command-line/file-faults.ts';
import { bounded } from '../common/command-line/text.ts';
import type { Violation } from '../common/command-line/violations.ts';
import { errorCode } from '../common/formats/error-code.ts';
import { encodeHex } from '../common/formats/hex.ts';
import { extendedOnce } from '../common/formats/register.ts';
import { readConfigFile } from '../service/config/consensus-config.ts';
import { loadConfig } from '../service/config/load.ts';
import { tableNameIn } from '../signer/aws/table-name.ts';
import { networkOf } from '../signer/config/network.ts';
import type { Config } from '../signer/config/options.ts';
import type { AttestedImage } from './key-policy.ts';

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PATH_CHARACTERS = 200;

export class InputRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InputRefused';
  }
}

export class ConfigurationViolated extends Error {
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    super('the configuration cannot be used');
    this.name = 'ConfigurationViolated';
    this.violations = violations;
  }
}

export function readConfig(file: string, env: Readonly<Record<string, string | undefined>>): Config {
  const loaded = loadConfig(
    { argv: ['-c', file], env },
    { compiledCeremony: false, onlyRead: true, withoutTokens: true },
  );
  if (!loaded.ok) throw new ConfigurationViolated(loaded.violations);
  return loaded.config;
}

/** Whether an enclave calls the tables with credentials of its own, sealed already or to be sealed. */
export function hasTableCredentials({ tee }: Config): boolean {
  return tee.platform === 'nitro' && !tee.nitro.unsafe_parent_writes_tables;
}

/** The configuration's own, or that of the file: an image has its ceremony compiled in. @throws InputRefused */
export function readCeremony(config: Config, file: string | undefined): Ceremony {
  if (config.ceremony !== undefined) {
    if (file === undefined) return parseCeremony(config.ceremony);
    throw new InputRefused('--ceremony is for the configuration of an enclave, which has none; this one has its own');
  }
  if (file === undefined) {
    throw new InputRefused('the configuration has no ceremony: name its file with --ceremony ceremony.yaml');
  }
  try {
    return parseCeremony(readCeremonyValue(readBytes('--ceremony', file).toString('utf8')));
  } catch (error) {
    if (error instanceof InputRefused) throw error;
    if (error instanceof InvalidCeremony || error instanceof Error) {
      throw new InputRefused(`--ceremony ${shown(file)}: ${error.message}`);
    }
    throw error;
  }
}

/** The deployment whose shares the keys wrap: as the signer names it. @throws InputRefused */
export function deploymentIn(config: Config): Deployment {
  const { table, deployment_id: id } = config.signer_state;
  if (table === undefined) {
    throw new InputRefused('the configuration has no signer_state.table: without one there is no custody ceremony');
  }
  return deploymentOf(encodeHex(networkIn(config).genesisValidatorsRoot), id ?? tableNameIn(table));
}

function networkIn(config: Config): ReturnType<typeof networkOf> {
  try {
    return networkOf(config, readConfigFile);
  } catch (error) {
    throw new InputRefused(error instanceof Error ? error.message : String(error));
  }
}

interface ImageInputs {
  readonly files: readonly string[];
  readonly registers: readonly string[];
  /** What an image that fetches its configuration is given. */
  readonly configFile: string;
}

export function readImages(
  { files, registers, configFile }: ImageInputs,
  said: (text: string) => void,
): readonly AttestedImage[] {
  const single = registers.length === 0 ? new Map() : understood('--pcr', () => parseRegisters(registers));
  const images = files.map((file) => {
    const bytes = readBytes('--pcrs', file);
    const values = understood(`--pcrs ${shown(file)}`, () => combineReferenceValues(parseReferenceFile(bytes), single));
    return {
      imageSha384: registerIn(values, 0, file),
      pcr16: values.get(CONFIGURATION_PCR) ?? measured(configFile, file, said),
      pcr17: registerIn(values, CEREMONY_PCR, file),
    };
  });
  const isStated = single.has(CONFIGURATION_PCR);
  if (!isStated && !images.some(({ pcr16 }) => pcr16.includes(pcr16Of(configFile)))) {
    said(`warning: no image has the PCR16 of ${shown(configFile)}: an enclave with this configuration opens nothing`);
  }
  return images;
}

function pcr16Of(configFile: string): string {
  return extendedOnce(createHash('sha384').update(readBytes('--config', configFile)).digest()).toString('hex');
}

/** The record of an image that fetches its configuration has no PCR16: it follows from the file that it will get. */
function measured(configFile: string, file: string, said: (text: string) => void): readonly string[] {
  said(`${shown(file)} has no PCR16 (its image fetches the configuration): it is that of ${shown(configFile)}`);
  return [pcr16Of(configFile)];
}

function registerIn(values: ReferenceValues, index: number, file: string): readonly string[] {
  const accepted = values.get(index);
  if (accepted !== undefined) return accepted;
  throw new InputRefused(
    `--pcrs ${shown(file)}: PCR${index} is missing, so another ceremony would open the key too; give it with --pcr ${index}=HEX`,
  );
}

function understood<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReferenceValueError)) throw error;
    throw new InputRefused(`${place}: ${error.message}`);
  }
}

function readBytes(flag: string, file: string): Buffer {
  try {
    if (statSync(file).size > MAX_FILE_BYTES) {
      throw new InputRefused(`${flag} ${shown(file)} is larger than ${MAX_FILE_BYTES} bytes`);
    }
    return readFileSync(file);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    throw new InputRefused(fileFault(`${flag} ${shown(file)}`, 'read', error));
  }
}

function shown(file: string): string {
  return bounded(file, MAX_PATH_CHARACTERS);
}
