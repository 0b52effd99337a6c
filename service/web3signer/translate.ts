// From Web3Signer's options to a configuration of strongroom. What an option of the table `sets` is copied; the rest
// stands here, in the order of the configuration. Every option that is given leaves a trace: a value, a warning or a
// refusal.

import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Violation } from '../../common/command-line/violations.ts';
import { decodeHex, encodeHex } from '../../common/formats/hex.ts';
import { translateAccess } from './access.ts';
import { DATABASE_URL, importCommand } from './database.ts';
import { type GivenOption, type GivenOptions, isOn } from './given.ts';
import { flagOf } from './option.ts';
import { GENESIS_VALIDATORS_ROOT, MOVED_FORKS } from './options/network.ts';
import { Translation } from './translation.ts';

const SLASHING_RECORD = 'slashing_protection.sqlite';
const DEFAULT = 'default';
const METRICS_PORT = 9001;

/** @param folder what paths are relative to: that of the start */
export function translate(given: GivenOptions, folder: string): Translation {
  const to = new Translation();
  for (const one of given.values()) translateOne(one, given, to);
  translateListening(given, isOn(given, 'metrics-enabled'), to);
  translateNetwork(given, folder, to);
  translateKeys(given, folder, to);
  translateStore(given, folder, to);
  translateAccess(given, folder, to);
  translateLogging(given, to);
  return to;
}

function translateOne(one: GivenOption, given: GivenOptions, to: Translation): void {
  const { option, value, origin } = one;
  const flag = flagOf(option);
  const lower = value.trim().toLowerCase();
  if (option.form === 'boolean' && lower !== 'true' && lower !== 'false') {
    to.refuse({ path: flag, problem: 'must be true or false', remedy: `write ${flag}=true or ${flag}=false`, origin });
    return;
  }
  const { becomes } = option;
  if (becomes.kind === 'honoured') {
    if (becomes.sets !== undefined) to.set(becomes.sets, option.form === 'number' ? numberOf(value) : value, origin);
  } else if (becomes.unless?.includes(lower) === true) {
    return;
  } else if (becomes.kind === 'refused') {
    to.refuse({ path: flag, problem: becomes.why, remedy: becomes.remedy, origin });
  } else {
    const command = option.names[0] === DATABASE_URL ? `: \`${importCommand(given)}\`` : '';
    to.warn(flag, `${becomes.instead}${command}`);
  }
}

function translateListening(given: GivenOptions, hasMetrics: boolean, to: Translation): void {
  if (!given.has('http-listen-host')) to.set('server.listen_address', '127.0.0.1', DEFAULT);
  if (!given.has('http-listen-port')) to.set('server.listen_port', 9000, DEFAULT);
  const hosts = given.get('http-host-allowlist');
  to.set('server.allowed_hosts', allowedHosts(hosts?.value ?? LOCAL_HOSTS), hosts?.origin ?? DEFAULT);
  const origins = given.get('http-cors-origins');
  if (origins !== undefined) to.set('server.cors_allowed_origins', corsOrigins(origins.value), origins.origin);
  const [host, port] = [given.get('metrics-host'), given.get('metrics-port')];
  to.set('metrics.listen_address', hasMetrics ? (host?.value ?? '127.0.0.1') : '127.0.0.1', host?.origin ?? DEFAULT);
  to.set('metrics.listen_port', hasMetrics ? numberOf(port?.value ?? `${METRICS_PORT}`) : 0, port?.origin ?? DEFAULT);
  to.set('server.web3signer_names', true, DEFAULT);
  for (const one of hasMetrics ? [] : [host, port]) {
    if (one !== undefined && !isOfImage(one)) to.warn(flagOf(one.option), 'does nothing without --metrics-enabled');
  }
}

/** The container image sets it for everybody (tools/release/image.ts): nobody who starts one has to be told. */
function isOfImage({ option, value, origin }: GivenOption): boolean {
  return origin.startsWith('environment ') && option.names[0] === 'metrics-host' && value === '0.0.0.0';
}

/** What Web3Signer answers unless it is told otherwise. */
const LOCAL_HOSTS = 'localhost,127.0.0.1';

/** `none` becomes an empty list, which the configuration refuses. */
function allowedHosts(value: string): readonly string[] | null {
  const hosts = value.split(',').map((host) => host.trim());
  if (hosts.length === 1 && (hosts[0] === '*' || hosts[0] === 'all')) return null;
  return hosts.length === 1 && hosts[0] === 'none' ? [] : hosts;
}

function corsOrigins(value: string): readonly string[] | null {
  const origins = value.split(',').map((origin) => origin.trim());
  if (origins.length === 1 && origins[0] === 'none') return null;
  return origins.map((origin) => (origin === 'all' ? '*' : origin));
}

/**
 * Descriptors, and folders of bare keystores. Without either Web3Signer reads descriptors in the folder of the start.
 */
function translateKeys(given: GivenOptions, folder: string, to: Translation): void {
  const [store, keystores] = [given.get('key-store-path'), given.get('keystores-path')];
  const paths = store === undefined && keystores !== undefined ? [] : [resolve(folder, store?.value ?? '.')];
  to.set('key_sources.filesystem.paths', paths, store?.origin ?? DEFAULT);
  for (const [name, member] of KEYSTORES) {
    const one = given.get(name);
    if (one !== undefined) to.set(`key_sources.filesystem.keystores.${member}`, resolve(folder, one.value), one.origin);
  }
}

const KEYSTORES = [
  ['keystores-path', 'path'],
  ['keystores-passwords-path', 'passwords_path'],
  ['keystores-password-file', 'password_file'],
] as const;

/**
 * Without --data-path it lies beside the keys: their folder lasts as long as they do. The folder of the start may go
 * with its container.
 */
function translateStore(given: GivenOptions, folder: string, to: Translation): void {
  const place = given.get('data-path') ?? given.get('key-store-path') ?? given.get('keystores-path');
  const path = join(resolve(folder, place?.value ?? '.'), SLASHING_RECORD);
  to.set('anti_slashing.backend', 'sqlite', DEFAULT);
  to.set('anti_slashing.path', path, place?.origin ?? DEFAULT);
  if (!given.has('data-path')) {
    to.warn(
      '--data-path',
      `is not given: the slashing record is ${path}. It has to outlive the container as the keys do`,
    );
  }
}

function translateLogging(given: GivenOptions, to: Translation): void {
  const [level, format] = [given.get('logging'), given.get('logging-format')];
  const lower = level?.value.trim().toLowerCase();
  if (level !== undefined) to.set('logging.level', lower === 'all' ? 'trace' : lower, level.origin);
  if (format === undefined) return;
  const layout = format.value.trim().toUpperCase();
  if (!LAYOUTS.includes(layout)) {
    const remedy = `write one of ${LAYOUTS.join(', ')}`;
    to.refuse({ path: '--logging-format', problem: 'is not a format of Web3Signer', remedy, origin: format.origin });
    return;
  }
  to.set('logging.format', layout === 'PLAIN' ? 'text' : 'json', format.origin);
  if (layout !== 'PLAIN')
    to.warn('--logging-format', 'is JSON with strongroom’s own members, whichever layout was named');
}

const LAYOUTS = ['PLAIN', 'ECS', 'GCP', 'GELF', 'LOGSTASH'];

// `--network`: a name that strongroom knows, or the path of a consensus config.yaml. The genesis validators root is
// not in that file, and is never taken from a request: the first one would decide for which network this signer's
// record is. It is stated, or stands beside the config.yaml in genesis_validators_root.txt, as the tools that make
// devnets write it.

const NAMES = ['mainnet', 'hoodi', 'sepolia', 'gnosis', 'chiado', 'plataberget', 'ephemery'];
const ROOT_FILE = 'genesis_validators_root.txt';
const ROOT_OPTION = `--${GENESIS_VALIDATORS_ROOT}`;
const STATE_ROOT =
  `add ${ROOT_OPTION}=0x…, from GET /eth/v1/beacon/genesis of a beacon node (or ` +
  'WEB3SIGNER_GENESIS_VALIDATORS_ROOT)';

function translateNetwork(given: GivenOptions, folder: string, to: Translation): void {
  const network = given.get('network');
  const root = given.get(GENESIS_VALIDATORS_ROOT);
  const value = network?.value ?? 'mainnet';
  const origin = network?.origin ?? 'default';
  const name = NAMES.find((one) => one === value.toLowerCase());
  if (name !== undefined) {
    to.set('network.name', name, origin);
    if (name === 'ephemery') setRoot(statedRoot(root, to), ROOT_OPTION, origin, to);
    else if (root !== undefined) to.refuse(needless(name, root));
  } else if (/^[a-z]+:\/\//i.test(value)) {
    const remedy = 'download the config.yaml, and give its path';
    to.refuse({ path: '--network', problem: 'is a URL: strongroom fetches no network', remedy, origin });
  } else if (/[/\\]|\.ya?ml$/i.test(value)) {
    const file = resolve(folder, value);
    to.set('network.name', 'custom', origin);
    to.set('custom_network.config_file', file, origin);
    customRoot(file, root, origin, to);
  } else {
    const remedy = `use one of ${NAMES.join(', ')}, or the path of the network’s config.yaml with ${ROOT_OPTION}`;
    to.refuse({ path: '--network', problem: 'names a network that strongroom does not have', remedy, origin });
  }
  for (const fork of MOVED_FORKS) {
    const moved = given.get(`Xnetwork-${fork}-fork-epoch`);
    if (moved !== undefined) to.set(`network.fork_schedule.${fork}`, numberOf(moved.value), moved.origin);
  }
}

/** Text that is no number stays text: the configuration refuses it. */
function numberOf(text: string): number | string {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : text;
}

function customRoot(file: string, root: GivenOption | undefined, origin: string, to: Translation): void {
  const path = join(dirname(file), ROOT_FILE);
  const beside = rootBeside(path);
  const stated = statedRoot(root, to);
  if (beside === 'malformed') {
    const remedy = `correct it, or remove it and ${STATE_ROOT}`;
    to.refuse({ path: '--network', problem: `lies beside ${path}, which is not 32 bytes of hex`, remedy, origin });
  } else if (stated !== undefined && beside !== undefined && stated !== beside) {
    const problem = `says another root than ${path} beside the config.yaml`;
    to.refuse({ path: ROOT_OPTION, problem, remedy: 'find out which network this is', origin: root?.origin ?? origin });
  } else {
    setRoot(stated ?? beside, root === undefined ? path : ROOT_OPTION, origin, to);
  }
}

function setRoot(root: string | undefined, from: string, origin: string, to: Translation): void {
  if (root !== undefined) to.set('custom_network.genesis_validators_root', root, from);
  else if (!to.hasRefused(ROOT_OPTION)) {
    const problem = 'is a network whose genesis validators root is not known, and no request may decide it';
    to.refuse({ path: '--network', problem, remedy: STATE_ROOT, origin });
  }
}

function statedRoot(root: GivenOption | undefined, to: Translation): string | undefined {
  if (root === undefined) return undefined;
  const bytes = decodeHex(root.value.toLowerCase(), 32);
  if (bytes !== undefined) return encodeHex(bytes);
  const remedy = 'write 0x and 64 digits';
  to.refuse({ path: ROOT_OPTION, problem: 'is not 32 bytes of hex', remedy, origin: root.origin });
  return undefined;
}

function rootBeside(path: string): string | 'malformed' | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim().toLowerCase();
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? undefined : 'malformed';
  }
  const bytes = decodeHex(text.startsWith('0x') ? text : `0x${text}`, 32);
  return bytes === undefined ? 'malformed' : encodeHex(bytes);
}

function needless(name: string, { origin }: GivenOption): Violation {
  const problem = `is for the path of a config.yaml and for ephemery; strongroom has that of ${name}`;
  return { path: ROOT_OPTION, problem, remedy: 'leave it out', origin };
}
