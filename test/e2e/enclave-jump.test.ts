// What a parent gets that rolls the tables back around a restart of the enclave: no signature that contradicts an
// earlier one. It holds the role's credentials, so it writes all tables, and it restarts the enclave at will. The time
// is the security module's, which the test moves.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { createDynamoDBClient, DeleteItemCommand, ScanCommand } from '../../signer/aws/dynamodb.ts';
import { type AttestedEnclave, startAttested } from '../support/attested-enclave.ts';
import { type EnclaveWorld, slashingSection, startEnclaveWorld } from '../support/enclave-world.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { latestEpoch, latestSlot } from '../support/present.ts';
import { attestation, block, rootOf } from '../support/requests.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 100 };
const EPOCH_MS = 384_000;

let moved = 0;
const clock = { now: () => Date.now() + moved };
const epochNow = () => latestEpoch(clock.now());

let world: EnclaveWorld;
let running: AttestedEnclave;
let bearer: string;
let path: string;

beforeAll(async () => {
  world = await startEnclaveWorld(clock);
  await start();
  const root = await world.custody.rootToken(world.stateTable);
  await running.client.call('/api/v1/auth/policies', {
    token: root,
    body: { name: 'all', rules: [{ effect: 'allow' }] },
  });
  const { json } = await running.client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
  bearer = String(json['token']);
  const made = await running.client.call('/api/v1/chamber/keys/generate-keys', { token: bearer, body: { count: 1 } });
  path = `/api/v1/eth2/sign/${(made.json['keys'] as [{ pubkey: string }])[0].pubkey}`;
});
afterAll(async () => {
  await running.stop();
  await world.close();
});

async function start(section: object = {}): Promise<void> {
  const yaml = world.yaml({ anti_slashing: slashingSection(world.stateTable, section) });
  running = await startAttested(world, clock, yaml);
}

/** Every mark; the record of the store stays, so that it looks like the same store. */
async function wipe(table: string): Promise<number> {
  const dynamodb = createDynamoDBClient(dynamoDBClientOptions(world.custody.dynamodb.endpoint));
  const { Items = [] } = await dynamodb.send(new ScanCommand({ TableName: table, ConsistentRead: true }));
  for (const { pk } of Items) {
    if (pk !== undefined && pk.S !== 'NETWORK')
      await dynamodb.send(new DeleteItemCommand({ TableName: table, Key: { pk } }));
  }
  dynamodb.destroy();
  return Items.length;
}

const voteFor = (target: number, head: string = rootOf(1)) => attestation({ source: target - 1, target, head });
const ask = (body: unknown) => running.client.call(path, { token: bearer, body });

describe('an enclave that has just started', () => {
  it('refuses what an earlier start may have signed, and what lies ahead of the clock', async () => {
    const status = await running.client.call('/api/v1/chamber/status', { token: bearer });
    const { jumped_at_boot: jump, warning } = status.json['slashing'] as Record<string, unknown>;
    const floor = jump as { readonly target_epoch: number; readonly slot: number };
    const epoch = epochNow(); // one may have begun since the start
    expect(epoch - floor.target_epoch).toBeGreaterThanOrEqual(0);
    expect(epoch - floor.target_epoch).toBeLessThanOrEqual(1);
    expect(warning).toContain('start this image twice');
    expect((await ask(voteFor(floor.target_epoch))).json['reason']).toBe('target_below_low_water_mark');
    expect((await ask(voteFor(floor.target_epoch - 5))).status).toBe(412);
    expect((await ask(block({ slot: floor.slot }))).json['reason']).toBe('block_below_low_water_mark');
    expect((await ask(voteFor(epoch + 3))).json['reason']).toBe('ahead_of_clock');
    expect((await ask(block({ slot: (epoch + 3) * 32 }))).json['reason']).toBe('ahead_of_clock');
  });

  it('signs the next epoch, when the security module says that it has come', async () => {
    moved += EPOCH_MS;
    const answer = await vi.waitFor(async () => {
      const signed = await ask(voteFor(epochNow()));
      expect(signed.status).toBe(200);
      return signed;
    }, WAIT);
    expect(answer.text).toMatch(/0x[0-9a-f]{192}/);
  });
});

describe('a parent that wipes the slashing table around a restart', () => {
  it('gets no second vote and no second block for what was signed before', async () => {
    const signedEpoch = epochNow();
    const slot = latestSlot(clock.now());
    await vi.waitFor(async () => expect((await ask(block({ slot }))).status).toBe(200), WAIT);
    await running.stop();
    expect(await wipe(`${world.stateTable}-slashing`)).toBeGreaterThan(0);
    await start();
    // A start that took longer than the pause that the binding allows waits first.
    await vi.waitFor(async () => expect((await ask(voteFor(signedEpoch, rootOf(2)))).status).toBe(412), WAIT);
    expect((await ask(block({ slot, body: rootOf(9) }))).status).toBe(412);
    // Around the vote before, as well: the source is refused, not only the target.
    moved += EPOCH_MS;
    await vi.waitFor(async () => expect((await ask(voteFor(epochNow()))).status).toBe(200), WAIT);
    const surrounding = attestation({ source: signedEpoch - 3, target: epochNow(), head: rootOf(3) });
    expect((await ask(surrounding)).status).toBe(412);
  });

  it('gets none where the jump at boot is switched off: the enclave that was killed did not end in order', async () => {
    await running.stop();
    await start({ jump_at_boot: false });
    moved += EPOCH_MS;
    const epoch = epochNow();
    await vi.waitFor(async () => expect((await ask(voteFor(epoch))).status).toBe(200), WAIT);
    // What lies ahead is refused in a fleet without a jump at boot too.
    expect((await ask(voteFor(epoch + 3))).json['reason']).toBe('ahead_of_clock');
    await running.stop();
    await wipe(`${world.stateTable}-slashing`);
    await start({ jump_at_boot: false });
    // As above: it may have to wait first.
    await vi.waitFor(async () => {
      expect((await ask(voteFor(epoch, rootOf(2)))).json['reason']).toMatch(/_below_low_water_mark$/);
    }, WAIT);
  });
});
