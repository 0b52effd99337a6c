// From Web3Signer's options to a configuration of strongroom. What an option of the table `sets` is copied; the rest
// stands here, in the order of the configuration. Every option that is given leaves a trace: a value, a warning or a
// refusal.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { translateAccess } from './access.ts';
import { DATABASE_URL, importCommandLine } from './database.ts';
import { type GivenOption, type GivenOptions, isOn } from './given.ts';
import { chainNumber, translateNetwork } from './network.ts';
import { web3SignerFlag } from './option.ts';
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
  const flag = web3SignerFlag(option);
  const lower = value.trim().toLowerCase();
  if (option.form === 'boolean' && lower !== 'true' && lower !== 'false') {
    to.refuse({ path: flag, problem: 'must be true or false', remedy: `write ${flag}=true or ${flag}=false`, origin });
    return;
  }
  const { becomes } = option;
  if (becomes.kind === 'honoured') {
    if (becomes.sets !== undefined) to.set(becomes.sets, option.form === 'number' ? chainNumber(value) : value, origin);
  } else if (becomes.unless?.includes(lower) === true) {
    return;
  } else if (becomes.kind === 'refused') {
    to.refuse({ path: flag, problem: becomes.why, remedy: becomes.remedy, origin });
  } else {
    const command = option.names[0] === DATABASE_URL ? `: \`${importCommandLine(given)}\`` : '';
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
  to.set(
    'metrics.listen_port',
    hasMetrics ? chainNumber(port?.value ?? `${METRICS_PORT}`) : 0,
    port?.origin ?? DEFAULT,
  );
  to.set('server.web3signer_names', true, DEFAULT);
  for (const one of hasMetrics ? [] : [host, port]) {
    if (one !== undefined && !isOfImage(one))
      to.warn(web3SignerFlag(one.option), 'does nothing without --metrics-enabled');
  }
}

/**
 * The container image sets it (tools/release/image.ts): a user who starts the image did not choose it and is not
 * warned.
 */
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
 * Where the slashing record may lie, the place of these options first. Without --data-path that is the folder of the
 * keys, which lasts as long as they do. The folder of the start, the last, may go with its container.
 */
export function recordPlaces(given: GivenOptions, folder: string): readonly string[] {
  const named = ['data-path', 'key-store-path', 'keystores-path'].flatMap((name) => given.get(name)?.value ?? []);
  return [...named, '.'].map((place) => join(resolve(folder, place), SLASHING_RECORD));
}

function translateStore(given: GivenOptions, folder: string, to: Translation): void {
  const place = given.get('data-path') ?? given.get('key-store-path') ?? given.get('keystores-path');
  const [path = SLASHING_RECORD] = recordPlaces(given, folder);
  to.set('anti_slashing.backend', 'sqlite', DEFAULT);
  to.set('anti_slashing.path', path, place?.origin ?? DEFAULT);
  if (given.has('data-path')) return;
  const advice = existsSync(path) ? '' : NEW_RECORD;
  to.warn('--data-path', `is not given: the slashing record is ${path}${advice}, and has to outlive the container`);
}

const NEW_RECORD =
  ', which is not there yet (if an earlier start or import named another folder, stop, and name that one with ' +
  '--data-path)';

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
