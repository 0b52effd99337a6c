// The argument lists with which tools start a Web3Signer, as they write them, and what a validator client then sees.
// `root` goes before each path: nothing in a file system of the tool's own, and otherwise a temporary folder.

import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { PACKAGE_CONFIG } from './consensus-configs.ts';
import { encryptKeystore, publicKeyOf, testSecret, writeKeystore } from './keys.ts';
import { attestation, call, forkInfo, rootOf, signCall } from './requests.ts';

/** Ports of their own, and addresses that nobody else reaches: variables of strongroom go over everything. */
export const ON_FREE_PORTS = {
  SVC_SERVER__LISTEN_ADDRESS: '127.0.0.1',
  SVC_SERVER__LISTEN_PORT: '0',
  SVC_METRICS__LISTEN_ADDRESS: '127.0.0.1',
  SVC_METRICS__LISTEN_PORT: '0',
  SVC_LOGGING__FORMAT: 'json',
};
export const TOOL_KEY = publicKeyOf(testSecret(1));
export const DEVNET_ROOT = rootOf(9);

/** ethpandaops/ethereum-package, src/remote_signer/remote_signer_launcher.star */
export const ethereumPackage = (root: string): string[] => [
  '--http-listen-port=9000',
  '--http-host-allowlist=*',
  '--metrics-enabled=true',
  '--metrics-host-allowlist=*',
  '--metrics-host=0.0.0.0',
  '--metrics-port=9001',
  'eth2',
  `--network=${root}/network-configs/config.yaml`,
  `--keystores-path=${root}/keystores/teku-keys`,
  `--keystores-passwords-path=${root}/keystores/teku-secrets`,
  '--slashing-protection-enabled=false',
];

/** What ethereum-package puts beside it; its `genesis_validators_root.txt` when `withRoot`. */
export function writeDevnet(root: string, withRoot: boolean): void {
  const [networks, keys, secrets] = ['network-configs', 'keystores/teku-keys', 'keystores/teku-secrets'].map((name) =>
    made(root, name),
  ) as [string, string, string];
  writeFileSync(join(networks, 'config.yaml'), PACKAGE_CONFIG);
  writeFileSync(join(keys, `${TOOL_KEY}.json`), JSON.stringify(encryptKeystore(testSecret(1), 'devnet')));
  writeFileSync(join(secrets, `${TOOL_KEY}.txt`), 'devnet');
  if (withRoot) writeFileSync(join(networks, 'genesis_validators_root.txt'), `${DEVNET_ROOT}\n`);
}

/** ethstaker/eth-docker, web3signer.yml; `keys` lies in /var/lib/web3signer. */
export const ethDocker = (root: string): string[] => [
  `--key-store-path=${root}/keys`,
  '--metrics-enabled',
  '--metrics-host-allowlist=*',
  '--http-host-allowlist=*',
  '--logging=info',
  'eth2',
  '--network=mainnet',
  '--enable-key-manager-api=true',
  '--slashing-protection-db-url=jdbc:postgresql://postgres:5432/web3signer',
  '--slashing-protection-db-username=postgres',
  '--slashing-protection-db-password=hunter2',
  '--slashing-protection-pruning-enabled=true',
];

/** dappnode/DAppNodePackage-web3signer-generic, which calls the program by its path. */
export const dappnode = (root: string): string[] => [
  `--key-store-path=${root}/data/keyfiles`,
  '--http-listen-host=0.0.0.0',
  '--http-cors-origins=http://web3signer.web3signer-hoodi.dappnode,http://brain.web3signer-hoodi.dappnode',
  '--http-host-allowlist=web3signer.web3signer-hoodi.dappnode,brain.web3signer-hoodi.dappnode',
  '--metrics-port',
  '9091',
  '--idle-connection-timeout-seconds=900',
  'eth2',
  '--network=mainnet',
  '--slashing-protection-db-url=jdbc:postgresql://postgres.web3signer-hoodi.dappnode:5432/web3signer',
  '--slashing-protection-db-username=postgres',
  '--slashing-protection-db-password=web3signer',
  '--slashing-protection-pruning-epochs-to-keep=500',
  '--key-manager-api-enabled=true',
];
export const DAPPNODE_HOST = 'web3signer.web3signer-hoodi.dappnode:9000';
/** Its user interface, in a browser. */
export const DAPPNODE_PAGE = 'http://brain.web3signer-hoodi.dappnode';

/** A folder with a keystore and its descriptor, as eth-docker and DAppNode have them. */
export function writeToolKeystore(folder: string): void {
  writeKeystore(folder, 'one', testSecret(1), 'password');
}

/** Votes once, and is refused another vote for the same target. */
export async function expectVotes({ url }: Pick<RunningSigner, 'url'>, root?: string): Promise<void> {
  const vote = (target: number, byte: number) => ({
    ...attestation({ source: 10, target, head: rootOf(byte) }),
    ...(root === undefined ? {} : { fork_info: forkInfo(root) }),
  });
  expect((await signCall(url, TOOL_KEY, vote(12, 1), { token: null })).status).toBe(200);
  expect((await signCall(url, TOOL_KEY, vote(12, 2), { token: null })).status).toBe(412);
  expect(JSON.parse((await call(`${url}/api/v1/eth2/publicKeys`, { token: null })).text)).toEqual([TOOL_KEY]);
}

/** A request that is addressed to a name: fetch writes the Host of its URL, whatever it is told. */
export async function askAs(host: string, url: string, body?: unknown): Promise<IncomingMessage> {
  const method = body === undefined ? 'GET' : 'POST';
  const asked = request(url, { method, headers: { host, origin: DAPPNODE_PAGE, 'content-type': 'application/json' } });
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer;
}

export function made(root: string, name: string): string {
  const path = join(root, name);
  mkdirSync(path, { recursive: true });
  return path;
}
