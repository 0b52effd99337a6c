// Participants of distributed keys on the real program: partial signatures that combine into the composite key's, one
// slashing record for both, and routes of whole keys that sign with no share.

import { join } from 'node:path';
import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { accountSchema } from '../../signer/api/distributed.ts';
import { addonForTests } from '../support/addon.ts';
import { deployKeys } from '../support/deployment.ts';
import { combined, testShare, writeShare } from '../support/distributed.ts';
import { publicKeyOf, testSecret, writeRawKey } from '../support/keys.ts';
import { type Answer, attestation, batchCall, block, call, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';

const ONE_KEY = 'sr_client_TEST_TOKEN_for_one_distributed_key_001';
const LISTS = 'sr_client_TEST_TOKEN_that_only_lists_keys_00001';
const IDS = [1, 2, 3, 4];
const [KEY, OTHER, WHOLE] = [1, 2, 3].map((number) => publicKeyOf(testSecret(number))) as [string, string, string];

function deployParticipant(participantId: number) {
  const deployment = deployKeys([], {
    static_auth: {
      policies: [
        { name: 'full', rules: [{ effect: 'allow' }] },
        { name: 'one', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] }] },
        { name: 'lists', rules: [{ effect: 'allow', scopes: ['public_keys'] }] },
      ],
      tokens: [
        { secret: TEST_TOKEN, policies: ['full'] },
        { secret: ONE_KEY, policies: ['one'] },
        { secret: LISTS, policies: ['lists'] },
      ],
    },
  });
  const folder = join(deployment.folder, 'keys');
  for (const number of [1, 2]) writeShare(folder, `share-${number}`, testShare(number, participantId));
  writeRawKey(folder, 'whole', testSecret(3));
  return deployment;
}

interface Partial {
  readonly participant_id: string;
  readonly signing_root: string;
  readonly signature: string;
}

function isSigned(publicKey: string, partials: readonly Partial[]): boolean {
  const [{ signing_root } = { signing_root: '' }] = partials;
  const signature = combined(
    partials.map(({ participant_id, ...partial }) => ({ participantId: Number(participant_id), ...partial })),
  );
  const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
  return verify(bytes(signing_root), PublicKey.fromHex(publicKey), Signature.fromBytes(signature));
}

const refusalOf = ({ status, json }: Answer) => [status, json['reason']];

describe.skipIf(!addonForTests())('participants of a distributed key', () => {
  const deployments = addonForTests() ? IDS.map(deployParticipant) : [];
  let signers: readonly RunningSigner[];
  let url: string;
  beforeAll(async () => {
    signers = await Promise.all(deployments.map((deployment) => deployment.start()));
    url = signers[0]?.url ?? '';
  }, 60_000);
  afterAll(() => Promise.all(signers.map((signer) => signer.stop())));

  const partial = (base: string, key: string, body: unknown, token = TEST_TOKEN) =>
    call(`${base}/api/v1/eth2/distributed/sign/${key}`, { body, token });
  const batch = (base: string, identifiers: readonly string[], body: unknown) =>
    call(`${base}/api/v1/eth2/distributed/sign`, { body: { identifiers, signing_request: body } });
  const listed = (path: string, token = TEST_TOKEN) => call(`${url}/api/v1/eth2/${path}`, { token });
  /** As an interchange file: what is recorded of a key. */
  const recorded = async (key: string) => {
    const { json } = await call(`${url}/api/v1/chamber/slashing-protection`);
    const data = json['data'] as readonly { pubkey: string; signed_attestations: readonly unknown[] }[];
    return data.find(({ pubkey }) => pubkey === key)?.signed_attestations ?? [];
  };

  it.each([
    ['an attestation', attestation({ source: 10, target: 11 })],
    ['a block', block({ slot: 5000 })],
  ])('any three sign %s as the composite key does, and two do not', async (_, body) => {
    const answers = await Promise.all(signers.map(({ url: base }) => partial(base, KEY, body)));
    expect(answers.map(({ status, headers }) => [status, headers.get('content-type')])).toEqual(
      IDS.map(() => [200, 'application/json']),
    );
    const partials = answers.map(({ json }) => json as unknown as Partial);
    expect(partials.map(({ participant_id }) => participant_id)).toEqual(['1', '2', '3', '4']);
    for (const absent of IDS) expect(isSigned(KEY, partials.toSpliced(absent - 1, 1))).toBe(true);
    expect(isSigned(KEY, partials.slice(0, 2))).toBe(false);
  });

  it('a batch has the root and the participant beside each signature', async () => {
    const body = attestation({ source: 20, target: 21 });
    const answers = await Promise.all(signers.slice(1).map(({ url: base }) => batch(base, [OTHER, KEY, WHOLE], body)));
    const results = answers.map(({ text }) => JSON.parse(text) as (Partial & { identifier: string })[]);
    expect(Object.keys(results[0]?.[0] ?? {})).toEqual(['identifier', 'participant_id', 'signing_root', 'signature']);
    for (const [place, key] of [OTHER, KEY].entries()) {
      expect(
        isSigned(
          key,
          results.flatMap((of) => of[place] ?? []),
        ),
      ).toBe(true);
    }
    expect(results[0]?.[2]).toEqual({
      identifier: WHOLE,
      error: {
        code: 404,
        reason: 'unknown_key',
        message: 'the public key is not loaded: as a share; this signer holds the whole key',
      },
    });
  });

  it('a second vote for a target is refused under the composite key', async () => {
    expect((await partial(url, KEY, attestation({ source: 30, target: 31 }))).status).toBe(200);
    const second = await partial(url, KEY, attestation({ source: 30, target: 31, head: rootOf(9) }));
    expect(refusalOf(second)).toEqual([412, 'double_vote']);
    const [result] = JSON.parse((await batch(url, [KEY], attestation({ source: 29, target: 32 }))).text);
    expect(result.error.reason).toBe('surrounding_vote');
  });

  it('a route of whole keys signs with no share, says where to go, and records nothing', async () => {
    const before = await recorded(OTHER);
    const body = attestation({ source: 40, target: 41 });
    const single = await signCall(url, OTHER, body);
    expect(refusalOf(single)).toEqual([409, 'key_is_share']);
    expect(single.json['message']).toContain('strongroom operator tunnel --participants');
    const many = JSON.parse((await batchCall(url, [OTHER, WHOLE], body)).text);
    expect(many).toMatchObject([{ error: { code: 409, reason: 'key_is_share' } }, { identifier: WHOLE }]);
    expect(many[1].signature).toMatch(/^0x[0-9a-f]{192}$/);
    expect(await recorded(OTHER)).toEqual(before);
    const other = attestation({ source: 40, target: 41, head: rootOf(8) });
    expect((await partial(url, OTHER, other)).status).toBe(200);
    const id = single.headers.get('x-request-id');
    const line = { public_key: OTHER, outcome: 'refused', status: 409, reason: 'key_is_share', target_epoch: 41 };
    expect(await signers[0]?.logged('request', { request_id: id })).toMatchObject(line);
  });

  it('the route of shares signs with no whole key, and says that it is here', async () => {
    const before = await recorded(WHOLE);
    const refused = await partial(url, WHOLE, attestation({ source: 50, target: 51 }));
    expect(refusalOf(refused)).toEqual([404, 'unknown_key']);
    expect(refused.json['message']).toContain('this signer holds the whole key');
    expect(await recorded(WHOLE)).toEqual(before);
  });

  it('policies go by the composite key, and who may not use it learns nothing of it', async () => {
    const body = attestation({ source: 60, target: 61 });
    expect((await partial(url, KEY, body, ONE_KEY)).status).toBe(200);
    for (const key of [OTHER, WHOLE, testShare(1, 1).share.publicKey]) {
      expect(refusalOf(await partial(url, key, body, ONE_KEY))).toEqual([403, 'denied']);
      expect(refusalOf(await signCall(url, key, body, { token: ONE_KEY }))).toEqual([403, 'denied']);
    }
  });

  it('publicKeys has whole keys alone, and accounts the shares that the caller may sign with', async () => {
    expect(JSON.parse((await listed('publicKeys')).text)).toEqual([WHOLE]);
    const all = JSON.parse((await listed('distributed/accounts')).text);
    expect(all.map(({ composite_public_key }: Record<string, string>) => composite_public_key)).toEqual(
      [KEY, OTHER].sort(),
    );
    const mine = JSON.parse((await listed('distributed/accounts', ONE_KEY)).text);
    const { share } = testShare(1, 1);
    expect(mine).toEqual([
      {
        participant_id: '1',
        composite_public_key: KEY,
        signing_threshold: '3',
        set: '1',
        commitments: share.commitments,
        public_key: share.publicKey,
        participants: IDS.map((id) => ({ participant_id: String(id) })),
      },
    ]);
    expect(accountSchema.safeParse(mine[0]).success).toBe(true);
    expect(JSON.parse((await listed('distributed/accounts', LISTS)).text)).toEqual([]);
  });

  it('one account is answered to who may sign with it, and a whole key has none', async () => {
    const path = (key: string) => `distributed/accounts/${key}`;
    expect((await listed(path(KEY), ONE_KEY)).json).toMatchObject({ composite_public_key: KEY, participant_id: '1' });
    expect(refusalOf(await listed(path(OTHER), ONE_KEY))).toEqual([403, 'denied']);
    const unknown = { ...(await listed(path(publicKeyOf(testSecret(9))), LISTS)).json, request_id: undefined };
    for (const key of [KEY, WHOLE]) {
      const { status, json } = await listed(path(key), LISTS);
      expect([status, { ...json, request_id: undefined }]).toEqual([404, unknown]);
    }
    expect(refusalOf(await listed(path(WHOLE)))).toEqual([404, 'unknown_key']);
    expect(refusalOf(await listed(path(publicKeyOf(testSecret(9)))))).toEqual([404, 'unknown_key']);
    expect(refusalOf(await listed(path(testShare(1, 1).share.publicKey)))).toEqual([404, 'unknown_key']);
  });

  it('operators see shares in the list of keys, with t of n', async () => {
    const { json } = await call(`${url}/api/v1/chamber/keys`);
    const keys = json['keys'] as readonly { pubkey: string; distributed: unknown }[];
    const distributed = Object.fromEntries(keys.map((key) => [key.pubkey, key.distributed]));
    const share = { participant_id: '1', signing_threshold: '3', participants: '4' };
    expect(distributed).toEqual({ [KEY]: share, [OTHER]: share, [WHOLE]: null });
  });
});
