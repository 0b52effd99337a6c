// The command line of Web3Signer, as picocli reads it: `--name=value`, `--name value`, booleans without a value, `-l
// LEVEL`, global options before and after `eth2`. Refused: unknown options, an option given twice, one without its
// value, other sub-commands. Two words are our own, and help is printed before they are read.

import { renderName, suggest, type Violation } from '../../common/command-line/violations.ts';
import type { GivenLayer, GivenOption } from './given.ts';
import { type Web3SignerOption, web3SignerFlag } from './option.ts';
import { ETH1_OPTIONS, OPTION_OF_NAME, WEB3SIGNER_OPTIONS } from './options/options.ts';

const COMMANDS = ['export', 'import', 'watermark-repair'] as const;
export type Web3SignerCommand = (typeof COMMANDS)[number];

export interface Arguments extends GivenLayer {
  readonly isEth2: boolean;
  readonly command: Web3SignerCommand | undefined;
  readonly printConfig: boolean;
  readonly version: boolean;
}

const OWN_WORDS: Readonly<Record<string, 'version' | 'printConfig'>> = {
  '--version': 'version',
  '-V': 'version',
  '--print-config': 'printConfig',
};
const LETTERS = new Map(
  WEB3SIGNER_OPTIONS.flatMap((option) => (option.letter === undefined ? [] : [[option.letter, option] as const])),
);

interface Reading {
  readonly rest: string[];
  readonly given: GivenOption[];
  readonly violations: Violation[];
  readonly own: Set<string>;
  isEth2: boolean;
  command: Web3SignerCommand | undefined;
}

export function readWeb3SignerArguments(argv: readonly string[]): Arguments {
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
    const remedy = `write ${web3SignerFlag(option)}=VALUE`;
    reading.violations.push({ path: web3SignerFlag(option), problem: 'has no value', remedy, origin });
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
        path: web3SignerFlag(option),
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
    WEB3SIGNER_OPTIONS.map(web3SignerFlag),
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
