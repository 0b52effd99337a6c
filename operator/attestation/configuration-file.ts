// The configuration that an enclave is to have, as a file that the auditor holds: PCR16 covers its exact bytes, so that
// a register that is equal shows that the enclave runs with what is read here.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { bounded } from '../../common/command-line/text.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PATH_CHARACTERS = 200;

export interface ReferenceConfiguration {
  readonly pcr16: string;
  readonly parentWritesTables: boolean;
}

export function readReferenceConfiguration(path: string): ReferenceConfiguration {
  const place = `--config: ${bounded(path, MAX_PATH_CHARACTERS)}`;
  const bytes = bytesOf(path, place);
  const document = parseStrictYaml(bytes.toString('utf8'));
  if ('problems' in document) throw new UsageFailure(`${place} is not a configuration of strongroom: it is no YAML`);
  return {
    pcr16: extendedOnce(createHash('sha384').update(bytes).digest()).toString('hex'),
    parentWritesTables: memberOf(document.value, 'tee', 'nitro', 'unsafe_parent_writes_tables') === true,
  };
}

function bytesOf(path: string, place: string): Buffer {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(path);
  } catch (error) {
    const code = errorCode(error);
    throw code === undefined ? error : fileFailure(place, 'read', code);
  }
}

function memberOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Readonly<Record<string, unknown>>)[name]
        : undefined,
    value,
  );
}
