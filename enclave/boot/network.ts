// Step "network": the constants of the configured network, and the config.yaml of a devnet where one is named.

import { readFileSync } from 'node:fs';
import type { Log } from '../../observe/log.ts';
import { type NetworkOptions, readNetwork } from '../config/network.ts';
import type { Network } from '../signing/networks.ts';

/** @throws Error with everything that is wrong with the file, or with the schedule beside it */
export function networkOf(options: NetworkOptions, log?: Log): Network {
  const reading = readNetwork(options, (path) => readFileSync(path));
  if ('findings' in reading) {
    throw new Error(
      reading.findings
        .map(({ at, within = [], problem, remedy }) => `${[at, ...within].join('.')} ${problem}: ${remedy}`)
        .join('; '),
    );
  }
  for (const { name, epoch } of reading.unknownForks) log?.warn({ fork: name, epoch }, UNKNOWN_FORK);
  return reading.network;
}

const UNKNOWN_FORK =
  'the config.yaml of the network plans a fork that this release does not know: from then on messages whose content forks ' +
  'change are refused. Install a release that knows it';
