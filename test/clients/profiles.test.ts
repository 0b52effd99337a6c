// Each client of docs/guides/clients.md, played against a real signer: it starts before the signer's keys are there,
// signs one message of each type, is refused, hangs up in the middle, and lives through a restart. TEST keys.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import type { Members } from '../expected/messages.ts';
import { makeCertificate } from '../support/certificates.ts';
import { deployKeys } from '../support/deployment.ts';
import { freePort } from '../support/free-port.ts';
import { FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { chainOf } from '../support/networks.ts';
import { presentSlot } from '../support/present.ts';
import { TEST_TOKEN, testKey } from '../support/requests.ts';
import { clientOf, type ProfileClient, shaped, typesOf } from './client.ts';
import { PROFILES, type Profile } from './profiles.ts';

const CHAIN = chainOf(publicNetwork('mainnet'));
/**
 * Everything is of the past: no clock refuses it. It is the first slot of an epoch: after the last slot of one, FIRST
 * + 1 would be in the next epoch, and vote(1) a second vote of that.
 */
const FIRST = (Math.floor(presentSlot() / CHAIN.slotsPerEpoch) - 40) * CHAIN.slotsPerEpoch;
const [DENIED, UNKNOWN] = [testKey(90).publicKey, testKey(99).publicKey];
const keyOf = (profile: Profile) => testKey(PROFILES.indexOf(profile)).publicKey;

type Asked = Parameters<typeof shaped>[2];
/** Votes of one epoch after the other; `other` is a second one of the same epoch. */
const vote = (epochs: number, other = false): Asked => {
  const changes = other ? { beacon_block_root: `0x${'0d'.repeat(32)}` } : {};
  return ['ATTESTATION', FIRST + epochs * CHAIN.slotsPerEpoch, changes];
};

async function expectSigned(client: ProfileClient, asked: Asked): Promise<string> {
  const key = keyOf(client.profile);
  const { body, root } = shaped(client.profile, CHAIN, asked);
  const { status, signature = '' } = await client.sign(key, body);
  expect([asked[0], status, signature.length]).toEqual([asked[0], 200, 194]);
  const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
  expect(verify(root, PublicKey.fromBytes(bytes(key)), Signature.fromBytes(bytes(signature)))).toBe(true);
  return signature;
}

async function expectRefused(
  client: ProfileClient,
  status: number,
  asked: Asked,
  place: { key?: string; fork?: Members },
) {
  const { body } = shaped(client.profile, CHAIN, asked);
  const fork = place.fork === undefined ? {} : { fork_info: { ...(body['fork_info'] as Members), ...place.fork } };
  const answer = await client.sign(place.key ?? keyOf(client.profile), { ...body, ...fork });
  const repeated = client.profile.repeats?.includes(status) === true;
  expect(answer).toEqual({ status, signature: undefined, asked: repeated ? 3 : 1 });
}

const WITH_TOKEN = PROFILES.filter(({ credential }) => credential !== 'none');
const WITHOUT = PROFILES.filter(({ credential }) => credential === 'none');

describe.each([
  ['a signer with tokens', WITH_TOKEN],
  ['a signer for callers without a credential', WITHOUT],
])('%s', (_name, profiles) => {
  const vc = {
    name: 'vc',
    rules: [
      { effect: 'allow', scopes: ['sign', 'public_keys'] },
      { effect: 'deny', scopes: ['sign'], keys: [DENIED] },
    ],
  };
  const callers =
    profiles === WITHOUT
      ? { anonymous: { policies: ['vc'] } }
      : { tokens: [{ secret: TEST_TOKEN, name: 'vc', policies: ['vc'] }] };
  const deployment = deployKeys([...profiles.map((one) => testKey(PROFILES.indexOf(one))), testKey(90)], {
    static_auth: { policies: [vc], ...callers },
  });
  // Most of a second for a core: the list is not there before it.
  writeKeystore(join(deployment.folder, 'keys'), 'slow', testSecret(1), 'password', FULL_SCRYPT);
  const listed = [...profiles.map(keyOf), publicKeyOf(testSecret(1))].toSorted();
  const { cert: cert_path, key: key_path } = makeCertificate(deployment.folder, 'tls');
  let config: Record<string, unknown>;
  let signer: RunningSigner;
  let clients: readonly ProfileClient[];
  beforeAll(async () => {
    config = {
      server: { listen_port: await freePort() },
      tls: { mode: 'file', listen_port: await freePort(), listen_address: '127.0.0.1', file: { cert_path, key_path } },
    };
    await startBeforeItsKeys();
    clients = profiles.map((profile) => clientOf(profile, urlOf(profile), TEST_TOKEN));
  });
  afterAll(async () => {
    for (const client of clients) client.end();
    await signer.stop();
  });
  const startBeforeItsKeys = async (): Promise<void> => {
    signer = await deployment.start({ config, waitFor: 'listening' });
    await signer.logged('listening', { listener: 'tls' });
    if (!signer.log.some(({ msg }) => msg === 'ready')) return;
    await signer.stop(); // this test slept through it
    return startBeforeItsKeys();
  };
  const urlOf = ({ credential }: Profile) => {
    return `${credential === 'basic after 401' ? signer.tlsUrl : signer.url}/`; // as operators paste it
  };
  const each = (play: (client: ProfileClient) => Promise<unknown>) => Promise.all(clients.map(play));
  const expectAllKeys = async (client: ProfileClient) => {
    let list = await client.list();
    while (list.status === 0) list = await client.list(); // its supervisor starts it again, or it asks later
    expect([list.status, list.keys?.toSorted()]).toEqual([200, listed]);
  };

  it('has every client that starts before its keys are there', async () => {
    await each(async (client) => {
      expect((await client.probe())?.status).toBeOneOf([200, 503, undefined]);
      if (client.profile.list !== 'configured') await expectAllKeys(client);
      await expectSigned(client, ['RANDAO_REVEAL', FIRST]);
    });
    await signer.logged('ready');
    const probed = await each(async ({ probe }) => (await probe())?.status);
    expect(probed).toEqual(profiles.map(({ probe }) => (probe === undefined ? undefined : 200)));
  });

  it.each(profiles)('signs each type as $client sends it, with and without a slash after its URL', async (profile) => {
    for (const url of [urlOf(profile), urlOf(profile).slice(0, -1)]) {
      const client = clientOf(profile, url, TEST_TOKEN);
      for (const type of typesOf(profile)) await expectSigned(client, [type, FIRST + 1]);
      client.end();
    }
  });

  it.each(profiles)('$client goes on after each refusal', async (profile) => {
    const client = clientOf(profile, urlOf(profile), TEST_TOKEN);
    await expectSigned(client, vote(1));
    await expectRefused(client, 412, vote(1, true), {});
    await expectSigned(client, ['BLOCK_V2', FIRST + 1]);
    await expectRefused(client, 412, ['BLOCK_V2', FIRST + 1, { body_root: `0x${'0d'.repeat(32)}` }], {});
    await expectRefused(client, 403, vote(2), { key: DENIED });
    await expectRefused(client, 404, vote(2), { key: UNKNOWN });
    await expectRefused(client, 400, vote(2), { fork: { genesis_validators_root: `0x${'99'.repeat(32)}` } });
    await expectSigned(client, vote(2));
    client.end();
    if (profile.credential === 'none') return;
    const wrong = clientOf(profile, urlOf(profile), 'sr_client_a_token_that_no_signer_knows');
    expect(await wrong.list()).toEqual({ status: 0, keys: undefined }); // and never an empty list
    await expectRefused(wrong, 403, vote(3), {});
    const bare = clientOf({ ...profile, credential: 'none' }, urlOf(profile), '');
    const keys = profile.list === 'runs without keys' ? [] : undefined;
    expect(await bare.list()).toEqual({ status: 401, keys });
    for (const { end } of [wrong, bare]) end();
  });

  it.each(profiles)(
    '$client gets the same signature after it hung up, and never one for another vote',
    async (profile) => {
      const client = clientOf(profile, urlOf(profile), TEST_TOKEN);
      await client.list(); // Teku knows by now that it has to authenticate
      for (const [epochs, when] of [
        [4, 'asked'],
        [5, 'answered'],
      ] as const) {
        await client.hangUp(keyOf(profile), shaped(profile, CHAIN, vote(epochs)).body, when);
        if (when === 'answered') await expectRefused(client, 412, vote(epochs, true), {});
        const signature = await expectSigned(client, vote(epochs));
        expect(await expectSigned(client, vote(epochs))).toBe(signature);
        await expectRefused(client, 412, vote(epochs, true), {});
      }
      client.end();
    },
  );

  it('refuses all of them by 503 while its store is locked, and signs the same afterwards', async () => {
    const other = new DatabaseSync(join(deployment.folder, 'slashing_protection.sqlite'));
    other.exec('BEGIN IMMEDIATE');
    await each((client) => expectRefused(client, 503, vote(6), {}));
    other.exec('ROLLBACK');
    other.close();
    await each((client) => expectSigned(client, vote(6)));
  });

  it('has them again after a restart: the same list, the same signature, no second vote', async () => {
    const before = await each((client) => expectSigned(client, vote(7)));
    expect(await signer.stop()).toBe(0);
    const gone = await each(({ list }) => list());
    expect(gone).toEqual(clients.map(() => ({ status: 0, keys: undefined })));
    await startBeforeItsKeys();
    await each(async (client) => {
      if (client.profile.list !== 'configured') await expectAllKeys(client);
    });
    expect(await each((client) => expectSigned(client, vote(7)))).toEqual(before);
    await each((client) => expectRefused(client, 412, vote(7, true), {}));
    await each((client) => expectSigned(client, vote(8)));
  });

  it('has a reason for each refusal in its audit lines', () => {
    const refused = signer.log.filter(({ audit, outcome }) => audit === true && outcome !== 'ok');
    expect(refused.map(({ reason }) => reason)).not.toContain(undefined);
  });
});

describe('docs/guides/clients.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/guides/clients.md'), 'utf8');
  const table = (page.split('\n\n').find((part) => part.startsWith('| Client |')) ?? '')
    .split('\n')
    .slice(2)
    .map((line) => line.split(/ ?\| ?/).slice(1, 5));

  it('has a profile for each client of its table that can use a remote signer', () => {
    const able = table.filter(([, configuration]) => !configuration?.startsWith('not possible'));
    expect(able.map(([client]) => client).toSorted()).toEqual(PROFILES.map(({ client }) => client).toSorted());
    expect(page.replaceAll(/\s+/g, ' ')).toContain(`have a profile: ${namesOf(() => true)}`);
  });

  it.each(PROFILES)('says of $client what its profile has', ({ client, credential, waits }) => {
    const [, , said, wait] = table.find(([name]) => name === client) ?? [];
    const start = { basic: /^Basic/, 'basic after 401': /^Basic \(`https` only\)/, none: /^none$/ }[credential];
    expect(said).toMatch(start);
    expect(wait).toContain(waits);
  });

  it('names those that drop a path in the URL', () => {
    expect(page.replaceAll(/\s+/g, ' ')).toContain(
      `**Path prefixes**: ${namesOf(({ joins }) => joins === 'absolute')} ignore`,
    );
  });
});

function namesOf(which: (profile: Profile) => boolean): string {
  const names = PROFILES.filter(which).map(({ client }) => client);
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
