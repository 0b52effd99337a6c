// A distributed key for real: four signers over three kinds of stores, a share each, and a combiner before them. One of
// them at a time is killed, frozen, restored from a copy of its folder, or lies: no duty is refused, and none that is
// slashable is signed. Two of them are more than 3 of 4 forgive.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { addonForTests } from '../support/addon.ts';
import { type DistributedWorld, startCombiner, startDistributed } from '../support/participants.ts';
import { startPostgres } from '../support/postgres.ts';
import { nextEpoch, QUICK_CHAIN, withTolerance } from '../support/quick-chain.ts';
import { attestation, batchCall, block, call, randaoReveal, rootOf, signCall, testKey } from '../support/requests.ts';

const KEYS = [testKey(1), testKey(2)] as const;
const [KEY] = KEYS;

let postgres: Awaited<ReturnType<typeof startPostgres>>;
let dynamodb: Awaited<ReturnType<typeof startDynamoDB>>;
let world: DistributedWorld;
let epoch = 0;

describe.skipIf(!addonForTests())('3 of 4 signers', () => {
  beforeAll(async () => {
    [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
    await dynamodb.createTable(tableDefinition('slashing'));
    const aws = { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'TEST', AWS_SECRET_ACCESS_KEY: 'TEST' };
    const url = postgres.url(await postgres.createDatabase());
    world = await startDistributed({
      keys: KEYS,
      threshold: 3,
      config: QUICK_CHAIN,
      stores: [
        { antiSlashing: withTolerance({}) },
        { antiSlashing: withTolerance({ backend: 'postgres' }), env: { SVC_ANTI_SLASHING__URL: url } },
        {
          antiSlashing: withTolerance({ backend: 'dynamodb', table: 'slashing' }),
          env: { ...aws, AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint },
        },
        { antiSlashing: withTolerance({}) },
      ],
    });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
    await Promise.all([postgres.close(), dynamodb.close()]);
  });

  /** A vote for an epoch that no vote was for. */
  async function newVote(head = rootOf(1)): Promise<Record<string, unknown>> {
    epoch = await nextEpoch(epoch);
    return attestation({ source: epoch - 1, target: epoch, head });
  }

  const vote = (body: unknown, publicKey = KEY.publicKey) => signCall(world.combiner.url, publicKey, body);

  async function expectSigned(body: unknown): Promise<void> {
    const answer = await vote(body);
    expect([answer.status, answer.json]).toEqual([200, { signature: expect.stringMatching(/^0x[0-9a-f]{192}$/) }]);
  }

  it('are one signer to a validator client', async () => {
    const listed = await call(`${world.combiner.url}/api/v1/eth2/publicKeys`);
    expect([listed.status, [...(listed.json as unknown as string[])].sort()]).toEqual([
      200,
      KEYS.map(({ publicKey }) => publicKey).sort(),
    ]);
    expect((await call(`${world.combiner.url}/upcheck`)).status).toBe(200);
    expect((await call(`${world.combiner.url}/healthcheck`)).status).toBe(200);
  });

  it('sign what one signer with the whole key signs, to the byte', async () => {
    const body = await newVote();
    const [one, participant] = await Promise.all([
      vote(body),
      call(`${world.participants[0]?.signer.url}/api/v1/eth2/distributed/sign/${KEY.publicKey}`, { body }),
    ]);
    const root = Buffer.from(String(participant.json['signing_root']).slice(2), 'hex');
    expect(verify(root, PublicKey.fromHex(KEY.publicKey), Signature.fromHex(String(one.json['signature'])))).toBe(true);
    expect((await vote(randaoReveal(epoch))).status).toBe(200);
    expect((await vote(block({ slot: epoch * 32 }))).status).toBe(200);
    expect(
      (
        await batchCall(
          world.combiner.url,
          KEYS.map(({ publicKey }) => publicKey),
          await newVote(),
        )
      ).text,
    ).toMatch(/"signature":"0x[0-9a-f]{192}".*"signature":"0x[0-9a-f]{192}"/);
  });

  it('refuse a second vote for a target', async () => {
    await expectSigned(await newVote());
    const second = await vote(attestation({ source: epoch - 1, target: epoch, head: rootOf(9) }));
    expect([second.status, second.json['reason']]).toEqual([412, 'double_vote']);
  });

  it('sign while one of them is killed, and when it is there again', async () => {
    const [, killed] = world.participants;
    await killed?.kill();
    for (let votes = 0; votes < 3; votes++) await expectSigned(await newVote());
    await killed?.start();
    await expectSigned(await newVote());
  });

  it('sign while one of them stands still', async () => {
    const [, , frozen] = world.participants;
    frozen?.freeze();
    try {
      for (let votes = 0; votes < 3; votes++) await expectSigned(await newVote());
    } finally {
      frozen?.thaw();
    }
  });

  it('sign while one of them lies, and name it', async () => {
    const liar = world.participants[3];
    if (liar !== undefined) liar.lies = true;
    for (let votes = 0; votes < 4; votes++) await expectSigned(await newVote());
    expect(world.combiner.lines().filter((line) => line.includes('participant-4'))).not.toEqual([]);
    if (liar !== undefined) liar.lies = false;
  });

  it('refuse a second vote for a target when one was restored from before the first, and votes go on', async () => {
    const [restored] = world.participants;
    await restored?.kill();
    const copy = restored?.copyFolder() ?? '';
    await restored?.start();
    await expectSigned(await newVote());
    await restored?.kill();
    restored?.restoreFolder(copy);
    await restored?.start();
    expect((await vote(attestation({ source: epoch - 1, target: epoch, head: rootOf(9) }))).status).toBe(412);
    await expectSigned(await newVote());
    await world.participants[1]?.kill(); // then the restored one is needed
    await expectSigned(await newVote());
    await world.participants[1]?.start();
  });

  it('are reached by any number of combiners', async () => {
    const other = await startCombiner(world.participantsFile);
    const [one, two] = [await newVote(rootOf(1)), attestation({ source: epoch - 1, target: epoch, head: rootOf(2) })];
    const statuses = await Promise.all([vote(one), signCall(other.url, KEY.publicKey, two)]);
    expect(statuses.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    expect((await signCall(other.url, KEY.publicKey, await newVote())).status).toBe(200);
    await other.end();
  });

  it('sign nothing when two of them are down, and say so', async () => {
    await world.participants[0]?.kill();
    await world.participants[1]?.kill();
    const answer = await vote(await newVote());
    expect([answer.status, answer.json['code']]).toEqual([503, 503]);
    expect((await call(`${world.combiner.url}/healthcheck`)).status).toBe(503);
    await world.participants[0]?.start();
    await expectSigned(await newVote());
    await world.participants[1]?.start();
  });

  it('send a client that asks one of them by mistake to the combiner', async () => {
    const { url } = world.participants[0]?.signer ?? { url: '' };
    const answer = await signCall(url, KEY.publicKey, await newVote());
    expect([answer.status, answer.json['reason']]).toEqual([409, 'key_is_share']);
    expect((await call(`${url}/api/v1/eth2/publicKeys`)).text).toBe('[]');
    await expectSigned(attestation({ source: epoch - 1, target: epoch })); // nothing of it was recorded
  });
});
