// Networks whose epochs and slots are not mainnet's, through the real program: what is signed lies in the domain of the
// fork that their epochs say, a jump is to their present, and records of another network are not taken.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import type { ForkName } from '../../signer/api/forks.ts';
import { type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { type Json, oracleObjectRoot, oracleSigningRoot } from '../sign/root-oracle.ts';
import { OWN_CONFIG } from '../support/consensus-configs.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { messageAt, versionOf } from '../support/fork-messages.ts';
import { interchangeOf } from '../support/interchange.ts';
import { call, signCall } from '../support/requests.ts';

const GNOSIS = publicNetwork('gnosis');
/** Fulu's first epoch on Gnosis; half of it would be the epoch of the slot if one had 32. */
const FULU = 1_714_688;
const FORKS = { previous: 'electra', current: 'fulu', epoch: FULU } as const;
const DOMAINS = {
  ATTESTATION: '0x01000000',
  BLOCK_V2: '0x00000000',
  AGGREGATE_AND_PROOF: '0x06000000',
  SYNC_COMMITTEE_MESSAGE: '0x07000000',
} as const;

/** Whether the signature is the key's over the message in the domain of this fork, by other code than the signer's. */
function isOf(network: Network, fork: ForkName, body: object, publicKey: string, signature: string): boolean {
  const domain = DOMAINS[(body as { type: keyof typeof DOMAINS }).type];
  const objectRoot = oracleObjectRoot(body as Record<string, Json>);
  const root = oracleSigningRoot(
    objectRoot,
    domain,
    Buffer.from(versionOf(network, fork)),
    network.genesisValidatorsRoot,
  );
  return verify(Buffer.from(root.slice(2), 'hex'), PublicKey.fromHex(publicKey), Signature.fromHex(signature));
}

async function signatureOf(signer: RunningSigner, publicKey: string, body: object): Promise<string> {
  const answer = await signCall(signer.url, publicKey, body, { headers: { accept: 'application/json' } });
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return String(answer.json['signature']);
}

describe('gnosis, with 16 slots an epoch of 5 s each', () => {
  let deployment: Deployment;
  let signer: RunningSigner;
  const publicKey = () => deployment.keys[0]?.publicKey ?? '';
  beforeAll(async () => {
    deployment = deploy(1, { network: 'gnosis' });
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());

  const types = Object.keys(DOMAINS) as (keyof typeof DOMAINS)[];
  it.each(types)('%s: the last slot of Electra and the first of Fulu are signed each in its domain', async (type) => {
    const last = messageAt(GNOSIS, type, FULU * 16 - 1, FORKS);
    const first = messageAt(GNOSIS, type, FULU * 16, FORKS);
    const inLast = await signatureOf(signer, publicKey(), last);
    const inFirst = await signatureOf(signer, publicKey(), first);
    expect(isOf(GNOSIS, 'electra', last, publicKey(), inLast)).toBe(true);
    expect(isOf(GNOSIS, 'fulu', first, publicKey(), inFirst)).toBe(true);
    expect(isOf(GNOSIS, 'fulu', last, publicKey(), inLast)).toBe(false);
  });

  it('a client that believes Fulu to begin an epoch later is refused', async () => {
    const body = messageAt(GNOSIS, 'SYNC_COMMITTEE_MESSAGE', FULU * 16, { ...FORKS, epoch: FULU + 1 });
    const answer = await signCall(signer.url, publicKey(), body);
    expect(answer.json).toMatchObject({ code: 400, reason: 'fork_mismatch' });
  });

  it('the slashing store takes records of Gnosis and not of mainnet, and jumps to the present of Gnosis', async () => {
    await signer.stop();
    const file = join(deployment.folder, 'records.json');
    const config = join(deployment.folder, 'jump.yaml');
    writeFileSync(config, JSON.stringify({ network: 'gnosis', anti_slashing: deployment.config['anti_slashing'] }));
    const slashing = (...args: string[]) => runStrongroom(['slashing', ...args, '-c', config]);

    writeFileSync(file, JSON.stringify(interchangeOf([publicKey()])));
    const refused = await slashing('import', file);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('the file is of another network, mainnet, not of gnosis');

    writeFileSync(file, JSON.stringify(interchangeOf([publicKey()], encodeHex(GNOSIS.genesisValidatorsRoot))));
    expect(await slashing('import', file)).toMatchObject({ code: 0 });

    const slotNow = () => Math.floor((Date.now() / 1000 + 120 - 1_638_993_340) / 5);
    const before = slotNow();
    const { stdout } = await slashing('jump', '--dry-run');
    const after = slotNow();
    const [, slot = '', epoch = ''] =
      /blocks up to slot (\d+), votes with a target up to epoch (\d+)/.exec(stdout) ?? [];
    expect(Number(slot)).toBeGreaterThanOrEqual(before);
    expect(Number(slot)).toBeLessThanOrEqual(after);
    expect(Number(epoch)).toBe(Math.floor(Number(slot) / 16));
  });
});

describe('a devnet of its config.yaml, with 8 slots an epoch of 2 s each', () => {
  const genesisTime = Math.floor(Date.now() / 1000) - 1000;
  const root = `0x${'ab'.repeat(32)}`;
  const slotNow = () => Math.floor((Date.now() / 1000 - genesisTime) / 2);
  let deployment: Deployment;
  let signer: RunningSigner;
  beforeAll(async () => {
    deployment = deploy(1, { network: 'custom' });
    const file = join(deployment.folder, 'config.yaml');
    writeFileSync(file, OWN_CONFIG);
    const custom_network = { genesis_validators_root: root, genesis_time: genesisTime, config_file: file };
    const anti_slashing = {
      ...(deployment.config['anti_slashing'] as object),
      jump_at_boot: true,
      clock_tolerance_seconds: 120,
    };
    signer = await deployment.start({ config: { custom_network, anti_slashing } });
  });
  afterAll(() => signer.stop());

  /** Bellatrix is the last fork with an epoch in the file; Capella may have begun by then. */
  function block(slot: number, version: string): object {
    const roots = { parent_root: root, state_root: root, body_root: root };
    return {
      type: 'BLOCK_V2',
      fork_info: {
        fork: { previous_version: '0x0100000a', current_version: version, epoch: '3' },
        genesis_validators_root: root,
      },
      beacon_block: { version: 'BELLATRIX', block_header: { slot: String(slot), proposer_index: '7', ...roots } },
    };
  }

  it('signs what its clock allows: nothing before the start, nothing ahead', async () => {
    const publicKey = deployment.keys[0]?.publicKey ?? '';
    const ask = (slot: number) => signCall(signer.url, publicKey, block(slot, '0x0200000a'));
    expect((await ask(slotNow() - 20)).json).toMatchObject({ code: 412, reason: 'block_below_low_water_mark' });
    expect((await ask(slotNow() + 100)).json).toMatchObject({ reason: 'ahead_of_clock' });
    expect((await call(signer.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="boot"\} 1$/m);
    // The floor of the start lies sixty slots ahead of it, the largest tolerance: then the next one is signed.
    await expect.poll(async () => (await ask(slotNow() + 60)).status, { interval: 500 }).toBe(200);
  });
});
