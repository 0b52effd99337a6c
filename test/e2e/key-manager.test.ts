// The Key Manager API on the real server: the shapes of the standard, and what keeps a key that moves between signers
// from being slashed.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { type InterchangeFile, interchangeOf } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { type Answer, attestation, block, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

const PASSWORD = 'TEST password';
const ONE_KEY = 'sr_client_TEST_TOKEN_for_one_imported_key_0001';
const SCOPES = ['sign', 'public_keys', 'list_keys', 'import_keystores', 'delete_keys', 'slashing_protection'];
const own = publicKeyOf(testSecret(900));
/** Of every test keystore. */
const PATH = 'm/12381/3600/0/0/0';

const config = {
  http: { key_manager_api: { enabled: true } },
  static_auth: {
    policies: [
      { name: 'full', rules: [{ effect: 'allow', scopes: SCOPES }] },
      { name: 'one', rules: [{ effect: 'allow', scopes: SCOPES, keys: [own] }] },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['full'] },
      { secret: ONE_KEY, policies: ['one'] },
    ],
  },
};
const deployment = deploy(1, config);
const [fileKey] = deployment.keys;
let signer: RunningSigner;
let second: RunningSigner;

beforeAll(async () => {
  [signer, second] = await Promise.all([deployment.start(), deploy(0, config).start()]);
});
afterAll(() => Promise.all([signer.stop(), second.stop()]));

type Options = Parameters<typeof call>[1] & object;
const keystores = (options: Options = {}, base = signer): Promise<Answer> =>
  call(`${base.url}/eth/v1/keystores`, options);

function importOf(numbers: readonly number[], slashing?: InterchangeFile): Record<string, unknown> {
  return {
    keystores: numbers.map((number) => JSON.stringify(encryptKeystore(testSecret(number), PASSWORD))),
    passwords: numbers.map(() => PASSWORD),
    ...(slashing === undefined ? {} : { slashing_protection: JSON.stringify(slashing) }),
  };
}

const remove = (pubkeys: readonly string[], base = signer): Promise<Answer> =>
  keystores({ method: 'DELETE', body: { pubkeys } }, base);

function recordsOf(answer: Answer): InterchangeFile {
  return JSON.parse(String(answer.json['slashing_protection'])) as InterchangeFile;
}

const statusesOf = ({ json }: Answer): unknown[] => (json['data'] as { status: string }[]).map(({ status }) => status);

describe('a record that is given otherwise', () => {
  const warned = () => signer.log.filter(({ msg }) => /imported without a slashing record/.test(String(msg))).length;

  it.each(['', null, undefined])('%j is none, with a warning', async (slashing_protection) => {
    const before = warned();
    const body = { ...importOf([60]), slashing_protection };
    expect(statusesOf(await keystores({ body }))).toEqual(['imported']);
    await expect.poll(warned).toBe(before + 1);
    expect(statusesOf(await remove([publicKeyOf(testSecret(60))]))).toEqual(['deleted']);
  });

  it('slashingProtection is refused by name, and nothing is imported', async () => {
    const body = { ...importOf([61]), slashingProtection: '{}' };
    const answer = await keystores({ body });
    expect(answer).toMatchObject({ status: 400, json: { reason: 'malformed_body' } });
    expect(answer.json['message']).toMatch(/slashingProtection: the record belongs into slashing_protection/);
    expect((await keystores()).text).not.toContain(publicKeyOf(testSecret(61)));
  });
});

describe('an imported key', () => {
  const key = publicKeyOf(testSecret(1));

  it('signs, is listed, and is not readonly; keys of files are', async () => {
    const imported = await keystores({ body: importOf([1]) });
    expect(imported).toMatchObject({ status: 200, json: { data: [{ status: 'imported' }] } });
    expect((await signCall(signer.url, key, randaoReveal())).status).toBe(200);
    const { json } = await keystores();
    expect(json['data']).toContainEqual({ validating_pubkey: key, derivation_path: PATH, readonly: false });
    expect(json['data']).toContainEqual({ validating_pubkey: fileKey?.publicKey, readonly: true });
  });

  it('is a duplicate when it comes again', async () => {
    expect(statusesOf(await keystores({ body: importOf([1]) }))).toEqual(['duplicate']);
  });

  it('is not found after it is deleted, and both of two deletes answer its records', async () => {
    expect((await signCall(signer.url, key, attestation())).status).toBe(200);
    const first = await remove([key]);
    expect(first.status).toBe(200);
    expect(statusesOf(first)).toEqual(['deleted']);
    expect((await signCall(signer.url, key, randaoReveal())).status).toBe(404);
    const repeated = await remove([key]);
    expect(statusesOf(repeated)).toEqual(['not_active']);
    for (const answer of [first, repeated]) {
      expect(recordsOf(answer).data).toMatchObject([
        { pubkey: key, signed_attestations: [{ source_epoch: '10', target_epoch: '11' }] },
      ]);
    }
  });
});

describe('slashing protection records', () => {
  it('of an import bind its keys from their first signature on', async () => {
    const key = publicKeyOf(testSecret(2));
    const imported = await keystores({ body: importOf([2], interchangeOf([key])) });
    expect(statusesOf(imported)).toEqual(['imported']);
    const vote = await signCall(signer.url, key, attestation({ source: 20, target: 21 }));
    expect(vote).toMatchObject({ status: 412, json: { reason: 'double_vote' } });
    const surrounding = await signCall(signer.url, key, attestation({ source: 19, target: 22 }));
    expect(surrounding.status).toBe(412);
    expect((await signCall(signer.url, key, block({ slot: 2000 }))).status).toBe(412);
    expect((await signCall(signer.url, key, attestation({ source: 21, target: 22 }))).status).toBe(200);
  });

  it('of a delete are what another signer accepts, and refuses with', async () => {
    const key = publicKeyOf(testSecret(3));
    await keystores({ body: importOf([3]) });
    expect((await signCall(signer.url, key, attestation({ source: 30, target: 31 }))).status).toBe(200);
    const records = recordsOf(await remove([key]));
    const moved = await keystores({ body: importOf([3], records) }, second);
    expect(statusesOf(moved)).toEqual(['imported']);
    const conflicting = attestation({ source: 30, target: 31, head: `0x${'77'.repeat(32)}` });
    expect((await signCall(second.url, key, conflicting)).status).toBe(412);
    expect((await signCall(second.url, key, attestation({ source: 30, target: 31 }))).status).toBe(200);
  });

  it('of another network refuse the import as a whole', async () => {
    const key = publicKeyOf(testSecret(4));
    const foreign = interchangeOf([key], `0x${'12'.repeat(32)}`);
    const answer = await keystores({ body: importOf([4], foreign) });
    expect(answer).toMatchObject({ status: 400, json: { reason: 'malformed_body' } });
    expect(answer.json['message']).toMatch(/another network/);
    expect((await signCall(signer.url, key, randaoReveal())).status).toBe(404);
  });

  it('that are broken at their end leave nothing behind of their beginning', async () => {
    const key = publicKeyOf(testSecret(5));
    const text = JSON.stringify(interchangeOf([key]));
    const answer = await keystores({ body: { ...importOf([5]), slashing_protection: text.slice(0, -3) } });
    expect(answer.status).toBe(400);
    expect(statusesOf(await remove([key]))).toEqual(['not_found']);
  });
});

describe('the answers of the standard', () => {
  it('an empty request changes nothing', async () => {
    expect((await keystores({ body: { keystores: [], passwords: [] } })).json).toEqual({ data: [] });
    const deleted = await remove([]);
    expect(deleted.json['data']).toEqual([]);
    expect(recordsOf(deleted).data).toEqual([]);
  });

  it('a key that nobody knows is not_found, a key of a file is an error, each in its place', async () => {
    const unknown = publicKeyOf(testSecret(6));
    const answer = await remove([unknown, fileKey?.publicKey ?? '', unknown]);
    expect(statusesOf(answer)).toEqual(['not_found', 'error', 'not_found']);
    expect((await signCall(signer.url, fileKey?.publicKey ?? '', randaoReveal())).status).toBe(200);
  });

  it.each([
    ['lists of different length', { keystores: ['{}'], passwords: [] }],
    ['no JSON', 'keystores'],
    ['a keystore that is no text', { keystores: [{}], passwords: [''] }],
  ])('%s is 400', async (_, body) => {
    const answer = await keystores({ body });
    expect(answer).toMatchObject({ status: 400, json: { code: 400, reason: 'malformed_body' } });
    expect(typeof answer.json['message']).toBe('string');
  });

  it('more keystores than one request may carry are 400 too_many_items, and none is imported', async () => {
    const body = { keystores: Array<string>(101).fill('{}'), passwords: Array<string>(101).fill('') };
    expect(await keystores({ body })).toMatchObject({ status: 400, json: { reason: 'too_many_items' } });
    const pubkeys = Array<string>(101).fill(own);
    expect(await keystores({ method: 'DELETE', body: { pubkeys } })).toMatchObject({ status: 400 });
  });

  it('each bad keystore is answered for itself, and the others are imported', async () => {
    const good = JSON.stringify(encryptKeystore(testSecret(10), PASSWORD));
    const light = { kind: 'pbkdf2', iterations: 1 } as const;
    const table: [string, string, string, RegExp][] = [
      [good, PASSWORD, 'imported', /^undefined$/],
      [JSON.stringify(encryptKeystore(testSecret(11), PASSWORD)), 'another', 'error', /password/],
      [good.slice(0, 100), PASSWORD, 'error', /not JSON/],
      [
        JSON.stringify(encryptKeystore(testSecret(12), PASSWORD, light, own.slice(2))),
        PASSWORD,
        'error',
        /another public key/,
      ],
      [good, PASSWORD, 'duplicate', /^undefined$/],
      [withScrypt(good, 2 ** 26), PASSWORD, 'error', /scrypt would take \d+ MiB, the limit is/],
      [JSON.stringify(encryptKeystore(testSecret(13), PASSWORD)), PASSWORD, 'imported', /^undefined$/],
      [
        JSON.stringify(encryptKeystore(Buffer.alloc(32), PASSWORD, light, '')),
        PASSWORD,
        'error',
        /no valid secret key/,
      ],
    ];
    const answer = await keystores({
      body: { keystores: table.map(([keystore]) => keystore), passwords: table.map(([, password]) => password) },
    });
    expect(answer.status).toBe(200);
    const results = answer.json['data'] as { status: string; message?: string }[];
    for (const [index, [, , status, message]] of table.entries()) {
      expect(results[index]?.status).toBe(status);
      expect(String(results[index]?.message)).toMatch(message);
    }
    for (const number of [10, 13]) {
      expect((await signCall(signer.url, publicKeyOf(testSecret(number)), randaoReveal())).status).toBe(200);
    }
    expect(signer.output()).not.toContain(PASSWORD);
  });

  it('each request leaves an audit line with its scope, and each key a line of its own', async () => {
    const key = publicKeyOf(testSecret(14));
    await keystores({ body: importOf([14]) });
    await keystores({ token: ONE_KEY, method: 'DELETE', body: { pubkeys: [key] } });
    await remove([key]);
    const said = (message: string, fields: Record<string, unknown>) =>
      expect(signer.logged(message, fields)).resolves.toBeDefined();
    await said('request', { scope: 'import_keystores', outcome: 'ok', status: 200 });
    await said('request', { scope: 'delete_keys', outcome: 'refused', reason: 'denied' });
    await said('request', { scope: 'delete_keys', outcome: 'ok', status: 200 });
    await said('a key was imported', { public_key: key, source: 'memory' });
    await said('a key was deleted', { public_key: key });
  });
});

describe('a token with a list of keys', () => {
  it('is shown those, and refused whole when a request names another, also in its slashing protection records', async () => {
    await keystores({ body: importOf([900]) });
    const { json } = await keystores({ token: ONE_KEY });
    expect(json['data']).toEqual([{ validating_pubkey: own, derivation_path: PATH, readonly: false }]);

    const other = publicKeyOf(testSecret(901));
    const denied = { status: 403, json: { reason: 'denied' } };
    expect(await keystores({ token: ONE_KEY, body: importOf([900, 901]) })).toMatchObject(denied);
    expect(await keystores({ token: ONE_KEY, body: importOf([900], interchangeOf([own, other])) })).toMatchObject(
      denied,
    );
    expect(await keystores({ token: ONE_KEY, method: 'DELETE', body: { pubkeys: [own, other] } })).toMatchObject(
      denied,
    );
    expect((await signCall(signer.url, own, randaoReveal())).status).toBe(200);
    expect(statusesOf(await remove([other]))).toEqual(['not_found']);
  });

  it('is refused also when the keystore does not say whose it is', async () => {
    const { pubkey: _, ...anonymous } = encryptKeystore(testSecret(902), PASSWORD);
    const body = { keystores: [JSON.stringify(anonymous)], passwords: [PASSWORD] };
    expect((await keystores({ token: ONE_KEY, body })).status).toBe(403);
    expect((await signCall(signer.url, publicKeyOf(testSecret(902)), randaoReveal())).status).toBe(404);
    expect(statusesOf(await keystores({ body }))).toEqual(['imported']);
  });
});

function withScrypt(keystore: string, n: number): string {
  const value = JSON.parse(keystore) as { crypto: { kdf: unknown } };
  value.crypto.kdf = { function: 'scrypt', params: { dklen: 32, n, r: 8, p: 1, salt: '00'.repeat(32) }, message: '' };
  return JSON.stringify(value);
}
