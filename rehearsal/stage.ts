// What the custody demonstration and the rehearsal share: stand-ins for DynamoDB and KMS on loopback, replicas of the
// real program as processes, the real operator commands, and a narrator. Everything is thrown away at the end.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CeremonyBlock } from '../ceremony/definition.ts';
import { publicNetwork } from '../enclave/signing/networks.ts';
import { encodeHex } from '../formats/hex.ts';
import { type CustodyWorld, startCustody } from './custody.ts';
import { type RunningSigner, runStrongroom, startSigner } from './signer.ts';
import { type TestKey, testKey } from './test-key.ts';

export interface Stage {
  readonly custody: CustodyWorld;
  readonly key: TestKey;
  say(text: string): void;
  heading(text: string): void;
  /** @param more merged over the configuration of every replica */
  startReplica(waitFor?: 'ready' | 'listening', more?: Readonly<Record<string, unknown>>): Promise<RunningSigner>;
  /** Run an operator command against a replica, show it, and expect its exit code. */
  operator(replica: RunningSigner, token: string, args: readonly string[], exitCode?: number): Promise<string>;
  /** A vote of the test key. */
  vote(
    replica: RunningSigner,
    token: string,
    target: number,
  ): Promise<{ readonly status: number; readonly text: string }>;
  /** The state table's name. */
  readonly table: string;
  /** Stops every replica still running and both stand-ins. */
  close(): Promise<void>;
}

/** @param prefix stands before every line that is written */
export async function setStage(prefix: string, block?: CeremonyBlock): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-custody-'));
  const custody = await startCustody();
  const ceremony = block === undefined ? custody.createCeremony() : throwAwayKeys(custody, block);
  const table = await custody.createTable();
  const key = testKey(0);
  const replicas = new Set<RunningSigner>();
  writeFileSync(join(folder, 'test-key.yaml'), `type: file-raw\nkeyType: BLS\nprivateKey: "${key.secret}"\n`);

  const say = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) process.stdout.write(`${prefix}${line}\n`);
  };
  return {
    custody,
    key,
    table,
    say,
    heading: (text) => say(`\n== ${text}`),
    async startReplica(waitFor = 'ready', { key_sources, ...more } = {}) {
      const keySources = { filesystem: { paths: [folder] }, ...(key_sources as object | undefined) };
      const replica = await startSigner({
        config: { ...custody.configuration(table, ceremony), ...more, key_sources: keySources },
        env: custody.environment(),
        waitFor,
      });
      replicas.add(replica);
      return replica;
    },
    async operator(replica, token, args, exitCode = 0) {
      say(`$ strongroom operator ${args.join(' ')}`);
      const connection = ['--signer-url', replica.url, '--allow-plaintext-signer'];
      const result = await runStrongroom(['operator', ...args, ...connection], { env: { SVC_OPERATOR_TOKEN: token } });
      if (result.code !== exitCode)
        throw new Error(`expected exit code ${exitCode}, got ${result.code}: ${result.stderr}`);
      return result.stdout;
    },
    async vote(replica, token, target) {
      const response = await fetch(`${replica.url}/api/v1/eth2/sign/${key.publicKey}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
        body: JSON.stringify(attestation(target)),
      });
      return { status: response.status, text: await response.text() };
    },
    async close() {
      await Promise.all([...replicas].map((replica) => replica.stop()));
      await custody.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The same ceremony, recipients and all, with keys of the stand-in under its ARNs. */
function throwAwayKeys(custody: CustodyWorld, block: CeremonyBlock): CeremonyBlock {
  for (const { arns } of block.kms_keys) custody.kms.createKey(arns);
  return { ...block, retired_kms_keys: [] };
}

function attestation(target: number): object {
  const root = `0x${'11'.repeat(32)}`;
  return {
    type: 'ATTESTATION',
    fork_info: {
      fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: '411392' },
      genesis_validators_root: encodeHex(publicNetwork('mainnet').genesisValidatorsRoot),
    },
    attestation: {
      slot: String(target * 32),
      index: '0',
      beacon_block_root: root,
      source: { epoch: String(target - 1), root },
      target: { epoch: String(target), root },
    },
  };
}
