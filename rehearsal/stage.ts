// What the custody demonstration and the rehearsal share: stand-ins for DynamoDB and KMS on loopback, replicas of the
// real program as processes, the real operator commands, and a narrator. Everything is thrown away at the end.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CeremonyBlock } from '../ceremony/definition.ts';
import { encodeHex } from '../common/formats/hex.ts';
import { publicNetwork } from '../signer/sign/networks.ts';
import { type CustodyWorld, startCustody } from './custody.ts';
import { type RunningSigner, runStrongroom, startSigner } from './signer.ts';
import { type TestKey, testKey } from './test-key.ts';

export interface Stage {
  readonly custody: CustodyWorld;
  readonly key: TestKey;
  say(text: string): void;
  heading(text: string): void;
  startReplica(waitFor?: 'ready' | 'listening', more?: Readonly<Record<string, unknown>>): Promise<RunningSigner>;
  /** Run an operator command against a replica, show it, and expect its exit code. */
  operator(replica: RunningSigner, token: string, args: readonly string[], exitCode?: number): Promise<string>;
  vote(
    replica: RunningSigner,
    token: string,
    target: number,
  ): Promise<{ readonly status: number; readonly text: string }>;
  proposal(replica: RunningSigner, token: string): Promise<{ readonly status: number; readonly text: string }>;
  readonly table: string;
  close(): Promise<void>;
}

export async function setStage(prefix: string, block?: CeremonyBlock): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-custody-'));
  const custody = await startCustody();
  const ceremony = block === undefined ? custody.createCeremony() : throwAwayKeys(custody, block);
  const table = await custody.createTable();
  const key = testKey(0);
  const replicas = new Set<RunningSigner>();
  writeFileSync(join(folder, 'test-key.yaml'), `type: file-raw\nkeyType: BLS\nprivateKey: "${key.secret}"\n`);

  const say = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) process.stdout.write(`${`${prefix}${line}`.trimEnd()}\n`);
  };
  const sign = async (replica: RunningSigner, token: string, body: object) => {
    const response = await fetch(`${replica.url}/api/v1/eth2/sign/${key.publicKey}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
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
    vote: (replica, token, target) => sign(replica, token, attestation(target)),
    proposal: (replica, token) => sign(replica, token, presentBlock()),
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

const MAINNET = publicNetwork('mainnet');
const FORK_INFO = {
  fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: '411392' },
  genesis_validators_root: encodeHex(MAINNET.genesisValidatorsRoot),
};
const ROOT = `0x${'11'.repeat(32)}`;

function attestation(target: number): object {
  return {
    type: 'ATTESTATION',
    fork_info: FORK_INFO,
    attestation: {
      slot: String(target * 32),
      index: '0',
      beacon_block_root: ROOT,
      source: { epoch: String(target - 1), root: ROOT },
      target: { epoch: String(target), root: ROOT },
    },
  };
}

function presentBlock(): object {
  const { genesisTimeSeconds = 0, slotDurationMs = 0 } = MAINNET.time ?? {};
  const slot = Math.floor((Date.now() - genesisTimeSeconds * 1000) / slotDurationMs);
  const roots = { parent_root: ROOT, state_root: ROOT, body_root: ROOT };
  const block_header = { slot: String(slot), proposer_index: '0', ...roots };
  return { type: 'BLOCK_V2', fork_info: FORK_INFO, beacon_block: { version: 'FULU', block_header } };
}
