// The command line of Web3Signer, as picocli reads it: `--name=value`, `--name value`, booleans without a value, `-l
// LEVEL`, global options before and after `eth2`. Refused: unknown options, an option given twice, one without its
// value, other sub-commands. Two words are our own, and help is printed before they are read.

import { readFileSync } from 'node:fs';
import { adviceOn } from '../../common/command-line/file-faults.ts';
import { renderName, suggest, type Violation, yamlViolations } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { parseStrictYaml, type StrictDocument } from '../../common/formats/yaml.ts';
import type { GivenLayer, GivenOption, OptionWarning } from './given.ts';
import { flagOf, keysOf, type Web3SignerOption } from './option.ts';
import { CONFIG_FILE, ETH1_OPTIONS, OPTION_OF_NAME, OPTIONS } from './options/options.ts';

const COMMANDS = ['export', 'import', 'watermark-repair'] as const;
export type Command = (typeof COMMANDS)[number];

export interface Arguments extends GivenLayer {
  readonly isEth2: boolean;
  readonly command: Command | undefined;
  readonly printConfig: boolean;
  readonly version: boolean;
}

const OWN_WORDS: Readonly<Record<string, 'version' | 'printConfig'>> = {
  '--version': 'version',
  '-V': 'version',
  '--print-config': 'printConfig',
};
const LETTERS = new Map(
  OPTIONS.flatMap((option) => (option.letter === undefined ? [] : [[option.letter, option] as const])),
);

interface Reading {
  readonly rest: string[];
  readonly given: GivenOption[];
  readonly violations: Violation[];
  readonly own: Set<string>;
  isEth2: boolean;
  command: Command | undefined;
}

export function readArguments(argv: readonly string[]): Arguments {
  const reading: Reading = {
    rest: [...argv],
    given: [],
    violations: [],
    own: new Set(),
    isEth2: false,
    command: undefined,
  };
  for (let word = reading.rest.shift(); word !== undefined; word = reading.rest.shift()) readWord(word, reading);
  const { violations, own, isEth2, command } = reading;
  return {
    given: joined(reading.given, violations),
    violations,
    warnings: [],
    isEth2,
    command,
    printConfig: own.has('printConfig'),
    version: own.has('version'),
  };
}

function readWord(word: string, reading: Reading): void {
  const own = OWN_WORDS[word];
  const command = COMMANDS.find((name) => name === word);
  if (own !== undefined) reading.own.add(own);
  else if (word === 'eth2' && !reading.isEth2) reading.isEth2 = true;
  else if (command !== undefined && reading.isEth2 && reading.command === undefined) reading.command = command;
  else if (word.startsWith('-')) readOption(word, reading);
  else reading.violations.push(notAnOption(word));
}

function readOption(word: string, reading: Reading): void {
  const equals = word.indexOf('=');
  const flag = equals === -1 ? word : word.slice(0, equals);
  const joinedOn = equals === -1 ? undefined : word.slice(equals + 1);
  const letter = flag.startsWith('--') ? undefined : LETTERS.get(flag.slice(1, 2));
  const option = letter ?? (flag.startsWith('--') ? OPTION_OF_NAME.get(flag.slice(2)) : undefined);
  if (option === undefined) {
    reading.violations.push(unknownOption(flag));
    // What follows an unknown option is most likely its value: one mistake, one violation.
    if (joinedOn === undefined && isValue(reading.rest[0])) reading.rest.shift();
    return;
  }
  // `-lDEBUG`: the value may be joined on to a letter.
  const attached = letter !== undefined && flag.length > 2 ? flag.slice(2) : undefined;
  const value = joinedOn ?? attached ?? valueAfter(option, reading.rest);
  const origin = `flag ${letter === undefined ? flag : flag.slice(0, 2)}`;
  if (value === undefined) {
    const remedy = `write ${flagOf(option)}=VALUE`;
    reading.violations.push({ path: flagOf(option), problem: 'has no value', remedy, origin });
  } else {
    reading.given.push({ option, value, origin });
  }
}

function valueAfter(option: Web3SignerOption, rest: string[]): string | undefined {
  if (option.form === 'boolean') return /^(?:true|false)$/i.test(rest[0] ?? '') ? rest.shift() : 'true';
  return isValue(rest[0]) ? rest.shift() : undefined;
}

/** A value that looks like an option, or the sub-command, is a forgotten value, unless it is joined on by `=`. */
function isValue(word: string | undefined): word is string {
  return word !== undefined && !word.startsWith('-') && word !== 'eth2';
}

/** One of each: lists are joined, and what is given twice otherwise is refused, as picocli does. */
function joined(given: readonly GivenOption[], violations: Violation[]): GivenOption[] {
  return [...Map.groupBy(given, ({ option }) => option)].flatMap(([option, uses]) => {
    const [first] = uses;
    if (first === undefined) return [];
    if (uses.length > 1 && option.isList !== true) {
      const problem = 'is given more than once';
      violations.push({
        path: flagOf(option),
        problem,
        remedy: `give it once${option.names.length > 1 ? `: ${option.names.join(' and ')} are the same` : ''}`,
        origin: first.origin,
      });
    }
    return [{ ...first, value: uses.map(({ value }) => value).join(',') }];
  });
}

const ETH1_ONLY = 'is an option of eth1, which strongroom does not have';

function unknownOption(flag: string): Violation {
  const name = flag.replace(/^-+/, '');
  const isEth1 = ETH1_OPTIONS.includes(name);
  const remedy = suggest(
    flag,
    OPTIONS.map(flagOf),
    'remove it; `strongroom web3signer --help` lists the options, ' +
      'docs/reference/web3signer.md says what becomes of each',
  );
  return {
    path: renderName(flag),
    problem: isEth1 ? ETH1_ONLY : 'is not an option of Web3Signer’s eth2',
    remedy: isEth1 ? 'remove it' : remedy,
    origin: `flag ${renderName(flag)}`,
  };
}

function notAnOption(word: string): Violation {
  const origin = 'the command line';
  if (word === 'eth1' || word === 'filecoin') {
    const remedy = 'keep Web3Signer for these keys, and give those of validators to strongroom with eth2';
    return { path: word, problem: 'is not here: strongroom signs for validators of eth2 only', remedy, origin };
  }
  if (word.startsWith('@')) {
    const remedy = 'write its options on the command line, or into the YAML file of --config-file';
    return {
      path: renderName(word),
      problem: 'is a file of arguments, which strongroom does not read',
      remedy,
      origin,
    };
  }
  const remedy = `write options, \`eth2\`, and one of ${COMMANDS.join(', ')} after it or none`;
  return { path: renderName(word), problem: 'is neither an option nor a command', remedy, origin };
}

// The YAML file of `--config-file`: keys as flags without dashes, those of the sub-command with `eth2.` before. What
// is no option of Web3Signer is refused, as there; keys of its other sub-commands do nothing here, and are warned of.

/** Far more than all options with room for lists. */
const MAX_CONFIG_FILE_BYTES = 1024 * 1024;

const OPTION_OF_KEY: ReadonlyMap<string, Web3SignerOption> = new Map(
  OPTIONS.filter(({ names }) => names[0] !== CONFIG_FILE).flatMap((option) =>
    keysOf(option).map((key) => [key, option] as const),
  ),
);
const OTHER_COMMAND = /^(?:eth1|filecoin)\./;
const NOTHING: GivenLayer = { given: [], violations: [], warnings: [] };

export function readConfigFile(file: GivenOption | undefined): GivenLayer {
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
