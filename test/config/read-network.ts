// The network that a configuration describes, read with a file of it where there is one; or what is found wrong.

import { expect } from 'vitest';
import { readConfigFile } from '../../service/config/consensus-config.ts';
import { readNetwork } from '../../signer/config/network.ts';
import type { Network } from '../../signer/sign/networks.ts';
import { loadGood } from './loading.ts';

export const ROOT = `0x${'ab'.repeat(32)}`;
export const FILE = `network: custom
custom_network: {genesis_validators_root: "${ROOT}", config_file: devnet.yaml, genesis_time: 1795348820}`;

function read(yaml: string, file?: string, env: Record<string, string> = {}) {
  return readNetwork(loadGood({ yaml, env }), (path) =>
    readConfigFile(path, () => {
      if (file === undefined) throw Object.assign(new Error(), { code: 'ENOENT' });
      expect(path).toBe('devnet.yaml');
      return Buffer.from(file);
    }),
  );
}

export function networkIn(yaml: string, file?: string, env: Record<string, string> = {}): Network {
  const reading = read(yaml, file, env);
  if ('findings' in reading) throw new Error(JSON.stringify(reading.findings));
  return reading.network;
}

export function findingsIn(yaml: string, file?: string): string[] {
  const reading = read(yaml, file);
  return 'findings' in reading
    ? reading.findings.map(({ at, within = [], problem }) => `${[at, ...within].join('.')} ${problem}`)
    : [];
}

export const epochsOf = ({ forks }: Network) => Object.fromEntries(forks.map(({ name, epoch }) => [name, epoch]));
