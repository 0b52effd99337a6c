// A network's consensus config.yaml, as clients and ethereum-package write it (consensus-specs, configs) → what a
// signer needs of it. Every value is read as the text that stands there, because YAML takes unquoted hex for numbers.
// Keys that are not needed are not looked at; one that is needed and wrong is refused by its name and line.

import { readFileSync } from 'node:fs';
import { errorCode } from '../../common/formats/error-code.ts';
import { decodeHex } from '../../common/formats/hex.ts';
import { decodeYaml, parseStrictYaml } from '../../common/formats/yaml.ts';
import { FORK_NAMES, type ForkName } from '../../signer/api/forks.ts';
import { PRESET_SLOTS_PER_EPOCH, type Preset } from '../../signer/api/network-table.ts';
import type { ConfigFileReading, ConsensusConfig } from '../../signer/config/network.ts';
import { orderProblems } from '../../signer/sign/fork-schedule.ts';
import {
  CONFIG_NAME_PATTERN,
  type Fork,
  SLOT_DURATION_MS_LIMITS,
  type UnknownFork,
} from '../../signer/sign/networks.ts';

interface ConsensusConfigProblem {
  readonly line: number | undefined;
  readonly problem: string;
}

type ConsensusConfigReading =
  | { readonly config: ConsensusConfig }
  | { readonly problems: readonly ConsensusConfigProblem[] };

export const MAX_CONSENSUS_CONFIG_BYTES = 1024 * 1024;

/** consensus-specs, FAR_FUTURE_EPOCH: not planned. */
const FAR_FUTURE_EPOCH = '18446744073709551615';
const FORK_KEY = /^([A-Z0-9_]+)_FORK_EPOCH$/;
const DECIMAL = /^[0-9]{1,16}$/;

/** @param readFile the disk unless given; throws when the file cannot be read */
export function readConfigFile(
  path: string,
  readFile: (path: string) => Uint8Array = (name) => readFileSync(name),
): ConfigFileReading {
  const at = 'custom_network.config_file';
  let bytes: Uint8Array;
  try {
    bytes = readFile(path);
  } catch (error) {
    const fault = errorCode(error);
    const code = fault === undefined ? '' : ` (${fault})`;
    const remedy = 'correct the path, or give the signer’s user the right to read it';
    return { findings: [{ at, problem: `names a file that cannot be read: ${path}${code}`, remedy }] };
  }
  const text = decodeYaml(bytes, MAX_CONSENSUS_CONFIG_BYTES);
  if (text === undefined) {
    const problem = `names a file that is not UTF-8, or larger than ${MAX_CONSENSUS_CONFIG_BYTES} bytes: ${path}`;
    return { findings: [{ at, problem, remedy: 'name the consensus config.yaml of the network' }] };
  }
  const reading = readConsensusConfig(text);
  if ('config' in reading) return reading;
  return {
    findings: reading.problems.map(({ line, problem }) => ({
      at,
      problem: `names ${path}${line === undefined ? '' : ` line ${line}`}: ${problem}`,
      remedy: 'correct the file, or take it from the network again',
    })),
  };
}

export function readConsensusConfig(text: string): ConsensusConfigReading {
  const document = parseStrictYaml(text, 'text');
  if ('problems' in document) return { problems: document.problems };
  const { value } = document;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { problems: [{ line: 1, problem: 'it has no keys: it is not a consensus config.yaml' }] };
  }
  const reader = new Reader(value as Readonly<Record<string, unknown>>, (key) => document.lineAt([key]));
  const known = forks(reader);
  const unknown = unknownForks(reader);
  const config = {
    configName: reader.optional('CONFIG_NAME', configName),
    preset: preset(reader),
    slotDurationMs: slotDuration(reader),
    depositChainId: reader.optional('DEPOSIT_CHAIN_ID', wholeNumber),
    forks: known,
    unknownForks: unknown,
    unknownFork: firstAfter(known, unknown, reader),
  };
  const { preset: itsPreset, slotDurationMs, ...rest } = config;
  if (reader.problems.length > 0 || itsPreset === undefined || slotDurationMs === undefined) {
    return { problems: reader.problems };
  }
  return { config: { ...rest, preset: itsPreset, slotDurationMs } };
}

type Parsed<Value> = { readonly value: Value } | { readonly expected: string };

class Reader {
  readonly problems: ConsensusConfigProblem[] = [];
  readonly keys: readonly string[];
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #lineOf: (key: string) => number;

  constructor(values: Readonly<Record<string, unknown>>, lineOf: (key: string) => number) {
    this.#values = values;
    this.#lineOf = lineOf;
    this.keys = Object.keys(values);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  optional<Value>(key: string, parse: (text: string) => Parsed<Value>): Value | undefined {
    if (!this.has(key)) return undefined;
    const text = this.#values[key];
    const parsed = typeof text === 'string' ? parse(text) : { expected: 'one value' };
    if ('value' in parsed) return parsed.value;
    this.refuse(key, `must be ${parsed.expected}`);
    return undefined;
  }

  required<Value>(key: string, parse: (text: string) => Parsed<Value>): Value | undefined {
    if (!this.has(key)) this.problems.push({ line: undefined, problem: `${key} is missing` });
    return this.optional(key, parse);
  }

  refuse(key: string, problem: string): void {
    this.problems.push({ line: this.has(key) ? this.#lineOf(key) : undefined, problem: `${key} ${problem}` });
  }
}

function preset(reader: Reader): Preset | undefined {
  const name = reader.required('PRESET_BASE', presetName);
  const slots = reader.optional('SLOTS_PER_EPOCH', wholeNumber);
  if (name !== undefined && slots !== undefined && slots !== PRESET_SLOTS_PER_EPOCH[name]) {
    reader.refuse(
      'SLOTS_PER_EPOCH',
      `contradicts PRESET_BASE: an epoch of ${name} has ${PRESET_SLOTS_PER_EPOCH[name]}`,
    );
  }
  return name;
}

/**
 * SECONDS_PER_SLOT is the older key, and rounded where a slot is no whole number of seconds: where the newer key is
 * given, too, the older one is only compared with it.
 */
function slotDuration(reader: Reader): number | undefined {
  const [inMs, inSeconds] = ['SLOT_DURATION_MS', 'SECONDS_PER_SLOT'] as const;
  const { min, max } = SLOT_DURATION_MS_LIMITS;
  const isOlder = reader.has(inSeconds) && !reader.has(inMs);
  const number = isOlder ? reader.optional(inSeconds, wholeNumber) : reader.required(inMs, wholeNumber);
  if (number === undefined) return undefined;
  const milliseconds = isOlder ? number * 1000 : number;
  if (milliseconds < min || milliseconds > max) {
    reader.refuse(isOlder ? inSeconds : inMs, `must be a time from ${min} ms to ${max} ms`);
  } else if (!isOlder && reader.has(inSeconds) && milliseconds % 1000 === 0) {
    const seconds = reader.optional(inSeconds, wholeNumber);
    if (seconds !== undefined && seconds * 1000 !== milliseconds) reader.refuse(inSeconds, `contradicts ${inMs}`);
  }
  return milliseconds;
}

function forks(reader: Reader): readonly Fork[] {
  const found = FORK_NAMES.flatMap((name) => {
    const version = reader.optional(versionKey(name), forkVersion);
    const epoch = name === 'phase0' ? 0 : (reader.optional(epochKey(name), forkEpoch) ?? null);
    return version === undefined && epoch === null ? [] : [{ name, version, epoch }];
  });
  const complete = found.flatMap(({ version, ...fork }) => (version === undefined ? [] : [{ ...fork, version }]));
  // Nothing more is said about values that are wrong by themselves.
  if (reader.problems.length === 0) checkForks(reader, complete, found.findLast(({ epoch }) => epoch !== null)?.name);
  return complete;
}

/** Every fork up to the last planned one has a version and an epoch, in order; and no version names two forks. */
function checkForks(reader: Reader, complete: readonly Fork[], lastPlanned: ForkName = 'phase0'): void {
  const planned = FORK_NAMES.slice(0, FORK_NAMES.indexOf(lastPlanned) + 1);
  for (const name of new Set<ForkName>([...planned, 'capella'])) {
    const fork = complete.find((candidate) => candidate.name === name);
    if (fork === undefined) reader.refuse(versionKey(name), 'is missing');
    else if (fork.epoch === null && planned.includes(name)) {
      reader.refuse(epochKey(name), `says that ${name} is not planned, and ${lastPlanned}, a later fork, is`);
    }
  }
  for (const { fork, problem } of orderProblems(complete)) reader.refuse(epochKey(fork), problem);
  for (const [place, { name, version }] of complete.entries()) {
    const twin = complete.slice(0, place).find((earlier) => Buffer.compare(earlier.version, version) === 0);
    if (twin !== undefined) reader.refuse(versionKey(name), `is the version of ${twin.name} too`);
  }
}

function unknownForks(reader: Reader): ConsensusConfig['unknownForks'] {
  const known = new Set(FORK_NAMES.map(epochKey));
  return reader.keys.flatMap((key) => {
    const name = FORK_KEY.exec(key)?.[1];
    const epoch = name === undefined || known.has(key) ? null : (reader.optional(key, forkEpoch) ?? null);
    return name === undefined || epoch === null ? [] : [{ name, epoch }];
  });
}

function firstAfter(known: readonly Fork[], unknown: readonly UnknownFork[], reader: Reader): UnknownFork | undefined {
  const last = Math.max(...known.map(({ epoch }) => epoch ?? 0));
  return unknown
    .filter(({ name, epoch }) => epoch > last && reader.has(`${name}_FORK_VERSION`))
    .toSorted((one, other) => one.epoch - other.epoch)[0];
}

function versionKey(name: ForkName): string {
  return name === 'phase0' ? 'GENESIS_FORK_VERSION' : `${name.toUpperCase()}_FORK_VERSION`;
}

function epochKey(name: ForkName): string {
  return `${name.toUpperCase()}_FORK_EPOCH`;
}

function presetName(text: string): Parsed<Preset> {
  const names = Object.keys(PRESET_SLOTS_PER_EPOCH) as Preset[];
  const name = names.find((candidate) => candidate === text);
  return name === undefined ? { expected: `one of ${names.join(', ')}` } : { value: name };
}

function configName(text: string): Parsed<string> {
  return CONFIG_NAME_PATTERN.test(text)
    ? { value: text }
    : { expected: 'a name of up to 64 letters, digits, spaces and . _ -' };
}

function wholeNumber(text: string): Parsed<number> {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? { value } : { expected: 'a whole number up to 2^53 - 1, decimal' };
}

function forkEpoch(text: string): Parsed<number | null> {
  if (text === FAR_FUTURE_EPOCH) return { value: null };
  const number = wholeNumber(text);
  return 'value' in number ? number : { expected: `an epoch up to 2^53 - 1, or ${FAR_FUTURE_EPOCH} (not planned)` };
}

function forkVersion(text: string): Parsed<Uint8Array> {
  const version = text.startsWith('0x') ? decodeHex(text, 4) : undefined;
  return version === undefined ? { expected: '4 bytes of hex, 0x and 8 digits' } : { value: version };
}
