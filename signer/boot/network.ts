// Step "network": the constants of the configured network, and the config.yaml of a devnet where one is named.

import type { Log } from '../../common/observe/log.ts';
import { type NetworkOptions, type ReadConfigFile, readNetwork } from '../config/network.ts';
import type { Network } from '../signing/networks.ts';

export function networkOf(options: NetworkOptions, readConfigFile: ReadConfigFile, log?: Log): Network {
  const reading = readNetwork(options, readConfigFile);
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
