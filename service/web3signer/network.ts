// `--network`: a name that strongroom knows, or the path of a consensus config.yaml. The genesis validators root is not
// in that file, and is never taken from a request: the first one would decide for which network this signer's record
// is. It is stated, or read from genesis_validators_root.txt in the folder of config.yaml, as the tools that make
// devnets write it.

import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Violation } from '../../common/command-line/violations.ts';
import { decodeHex, encodeHex } from '../../common/formats/hex.ts';
import type { GivenOption, GivenOptions } from './given.ts';
import { GENESIS_VALIDATORS_ROOT, MOVED_FORKS } from './options/network.ts';
import type { Translation } from './translation.ts';

const NAMES = ['mainnet', 'hoodi', 'sepolia', 'gnosis', 'chiado', 'plataberget', 'ephemery'];
const ROOT_FILE = 'genesis_validators_root.txt';
const ROOT_OPTION = `--${GENESIS_VALIDATORS_ROOT}`;
const STATE_ROOT =
  `add ${ROOT_OPTION}=0x…, from GET /eth/v1/beacon/genesis of a beacon node (or ` +
  'WEB3SIGNER_GENESIS_VALIDATORS_ROOT)';

export function translateNetwork(given: GivenOptions, folder: string, to: Translation): void {
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
    if (moved !== undefined) to.set(`network.fork_schedule.${fork}`, chainNumber(moved.value), moved.origin);
  }
}

/** Text that is no number stays text: the configuration refuses it. */
export function chainNumber(text: string): number | string {
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
