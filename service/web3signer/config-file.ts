// The YAML file of `--config-file`: keys as flags without dashes, those of the sub-command with `eth2.` before. What
// is no option of Web3Signer is refused, as there; keys of its other sub-commands do nothing here, and are warned of.

import { readFileSync } from 'node:fs';
import { adviceOn } from '../../common/command-line/file-faults.ts';
import { renderName, suggest, type Violation, yamlViolations } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { parseStrictYaml, type StrictDocument } from '../../common/formats/yaml.ts';
import type { GivenLayer, GivenOption, OptionWarning } from './given.ts';
import { keysOf, type Web3SignerOption } from './option.ts';
import { CONFIG_FILE, WEB3SIGNER_OPTIONS } from './options/options.ts';

/** Far more than all options with room for lists. */
const MAX_CONFIG_FILE_BYTES = 1024 * 1024;

const OPTION_OF_KEY: ReadonlyMap<string, Web3SignerOption> = new Map(
  WEB3SIGNER_OPTIONS.filter(({ names }) => names[0] !== CONFIG_FILE).flatMap((option) =>
    keysOf(option).map((key) => [key, option] as const),
  ),
);
const OTHER_COMMAND = /^(?:eth1|filecoin)\./;
const NOTHING: GivenLayer = { given: [], violations: [], warnings: [] };

export function readWeb3SignerFile(file: GivenOption | undefined): GivenLayer {
  if (file === undefined) return NOTHING;
  const path = file.value;
  const refused = (problem: string, remedy: string): GivenLayer => ({
    ...NOTHING,
    violations: [{ path: `--${CONFIG_FILE}`, problem, remedy, origin: file.origin }],
  });
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const code = errorCode(error);
    const problem = `names a file that cannot be read: ${path}${code === undefined ? '' : ` (${code})`}`;
    return refused(problem, adviceOn(code ?? '') ?? 'name a file that this user may read');
  }
  if (bytes.length > MAX_CONFIG_FILE_BYTES)
    return refused(`names a file of more than ${MAX_CONFIG_FILE_BYTES} bytes: ${path}`, 'make it smaller');
  const document = parseStrictYaml(bytes.toString('utf8'), 'text');
  if ('problems' in document) return { ...NOTHING, violations: yamlViolations(document.problems, path) };
  const { value } = document;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) {
    return refused(`names a file without options: ${path}`, 'write one option a line: `http-listen-port: 9000`');
  }
  return readKeys(value, document, path);
}

function readKeys(keys: object, document: StrictDocument, path: string): GivenLayer {
  const given: GivenOption[] = [];
  const violations: Violation[] = [];
  const warnings: OptionWarning[] = [];
  for (const [key, value] of Object.entries(keys)) {
    const origin = `${path} line ${document.lineAt([key])}`;
    const option = OPTION_OF_KEY.get(key);
    const text = textOf(value);
    if (option === undefined && OTHER_COMMAND.test(key)) {
      warnings.push({
        at: `${renderName(key)} (${origin})`,
        says: 'belongs to a sub-command that strongroom does not have, and does nothing',
      });
    } else if (option === undefined) {
      const remedy = suggest(key, OPTION_OF_KEY.keys(), 'remove it; docs/reference/web3signer.md lists the keys');
      violations.push({ path: renderName(key), problem: 'is not an option of Web3Signer', remedy, origin });
    } else if (text === undefined || (Array.isArray(value) && option.isList !== true)) {
      violations.push({
        path: renderName(key),
        problem: 'must be one value',
        remedy: 'write it on the line of its key',
        origin,
      });
    } else if (given.some((one) => one.option === option)) {
      const remedy = `write one of ${keysOf(option).join(' and ')}: they are the same`;
      violations.push({ path: renderName(key), problem: 'is given more than once', remedy, origin });
    } else {
      given.push({ option, value: text, origin });
    }
  }
  return { given, violations, warnings };
}

/** A list is joined with commas, as Web3Signer does. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return undefined;
  return value.join(',');
}
