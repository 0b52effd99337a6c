// Shares over both key APIs of a plain service that keeps imports on disk: imported, listed, kept over a restart,
// deleted with the records of the composite key; and what is refused, item by item. The log of receipts has refusals.

import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { SHARE_REFUSALS } from '../../signer/keys/loaded-key.ts';
import { keptBoots } from '../receipts/kept.ts';
import { addonForTests } from '../support/addon.ts';
import { deployKeys } from '../support/deployment.ts';
import { SHARE_PASSWORD, shareKeystore, testShare, writeShare } from '../support/distributed.ts';
import { encryptKeystore, FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { PORTABLE_PROGRAM } from '../support/portable-program.ts';
import { attestation, call, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';

const KEY_MANAGER = '/eth/v1/keystores';
const CHAMBER = '/api/v1/chamber/keys';
const key = (number: number) => publicKeyOf(testSecret(number));
const whole = (number: number) => encryptKeystore(testSecret(number), SHARE_PASSWORD);
const share = (...given: Parameters<typeof testShare>) => shareKeystore(testShare(...given));
const enabled = { enabled: true };

function deployImports() {
  const deployment = deployKeys([], {
    http: { key_manager_api: enabled },
    chamber: { keys: { import: enabled, lifecycle: enabled } },
    key_sources: { memory: { persist_dir: 'imported', persist_secret: 'env:PERSIST' } },
    static_auth: {
      policies: [{ name: 'full', rules: [{ effect: 'allow' }] }],
      tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
    },
  });
  const receipts = join(deployment.folder, 'receipts');
  const kept = join(deployment.folder, 'imported');
  mkdirSync(kept, { mode: 0o700 });
  const config = { receipts: { storage: 'folder', path: receipts, interval_seconds: 1 } };
  const start = (program?: typeof PORTABLE_PROGRAM) =>
    deployment.start({
      config,
      env: { PERSIST: 'TEST persist secret 0001' },
      ...(program === undefined ? {} : { program }),
    });
  return { kept, receipts, start };
}

interface Imported {
  readonly pubkey?: string | null;
  readonly status: string;
  readonly message?: string;
}

const importInto = async ({ url }: RunningSigner, path: string, keystores: readonly object[]) => {
  const texts = keystores.map((keystore) => JSON.stringify(keystore));
  const body = {
    keystores: texts,
    passwords: keystores.map(() => SHARE_PASSWORD),
    ...(path === CHAMBER ? { storage: { persist: false } } : {}),
  };
  const { json } = await call(`${url}${path}`, { body });
  return json['data'] as readonly Imported[];
};
const partial = (signer: RunningSigner, publicKey: string, body: object) =>
  call(`${signer.url}/api/v1/eth2/distributed/sign/${publicKey}`, { body });

describe.skipIf(!addonForTests())('shares that are imported', () => {
  const deployment = deployImports();
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());

  it.each([
    ['the Key Manager API', KEY_MANAGER, 1],
    ['the chamber', CHAMBER, 2],
  ] as const)('over %s are the composite key, on disk, and duplicates the second time', async (_, path, number) => {
    const [imported] = await importInto(signer, path, [share(number, 3)]);
    expect(imported).toMatchObject({ status: 'imported' });
    if (path === CHAMBER) expect(imported?.pubkey).toBe(key(number));
    expect(await importInto(signer, path, [share(number, 3)])).toMatchObject([{ status: 'duplicate' }]);
    expect(readdirSync(deployment.kept)).toContain(`${key(number).slice(2)}.json`);
    const { json } = await call(`${signer.url}${KEY_MANAGER}`);
    expect(json['data']).toContainEqual({
      validating_pubkey: key(number),
      derivation_path: 'm/12381/3600/0/0/0',
      readonly: false,
    });
  });

  it.each([KEY_MANAGER, CHAMBER])('in another form than the one that is here are refused by %s', async (path) => {
    const other = { status: 'error', message: SHARE_REFUSALS.held_otherwise };
    await importInto(signer, path, [share(1, 3)]);
    expect(await importInto(signer, path, [whole(1), share(1, 4), share(1, 3, { set: 2 })])).toMatchObject([
      other,
      other,
      other,
    ]);
    expect((await partial(signer, key(1), attestation({ source: 1, target: 2 }))).json['participant_id']).toBe('3');
  });

  it('in two forms by one request: the first one is taken, whole or share', async () => {
    const other = { status: 'error', message: SHARE_REFUSALS.held_otherwise };
    const answers = await importInto(signer, CHAMBER, [whole(3), share(3, 1), share(4, 1), whole(4), share(4, 1)]);
    expect(answers).toMatchObject([
      { status: 'imported' },
      other,
      { status: 'imported' },
      other,
      { status: 'duplicate' },
    ]);
    expect((await signCall(signer.url, key(3), attestation({ source: 1, target: 2 }))).status).toBe(200);
    expect((await partial(signer, key(4), attestation({ source: 1, target: 2 }))).status).toBe(200);
  });

  it('that do not fit are refused with the reason, beside one that does', async () => {
    const { secretKey, share: of } = testShare(5, 1);
    const { commitments } = testShare(5, 1, { set: 2 }).share;
    const answers = await importInto(signer, CHAMBER, [
      shareKeystore({ share: { ...of, commitments }, secretKey }),
      shareKeystore({ share: of, secretKey: testShare(5, 2).secretKey }),
      { ...share(5, 1), distributed: { ...share(5, 1).distributed, participant_id: '9' } },
      share(6, 1),
    ]);
    expect(answers.map(({ status, message }) => [status, message])).toEqual([
      ['error', SHARE_REFUSALS.share_mismatch],
      ['error', 'the keystore holds the secret of another public key than it names'],
      ['error', 'not an EIP-2335 keystore: distributed: participant_id is above the number of participants'],
      ['imported', undefined],
    ]);
    expect((await partial(signer, key(5), attestation({ source: 1, target: 2 }))).status).toBe(404);
  });

  it('are deleted with the records of the composite key, and may come back whole then', async () => {
    await importInto(signer, KEY_MANAGER, [share(7, 2)]);
    expect((await partial(signer, key(7), attestation({ source: 70, target: 71 }))).status).toBe(200);
    const deleted = await call(`${signer.url}${KEY_MANAGER}`, { method: 'DELETE', body: { pubkeys: [key(7)] } });
    expect(deleted.json['data']).toEqual([{ status: 'deleted' }]);
    const file = JSON.parse(String(deleted.json['slashing_protection']));
    expect(file.data).toMatchObject([{ pubkey: key(7), signed_attestations: [{ source_epoch: '70' }] }]);
    expect(readdirSync(deployment.kept)).not.toContain(`${key(7).slice(2)}.json`);
    expect((await partial(signer, key(7), attestation({ source: 71, target: 72 }))).json['reason']).toBe('unknown_key');
    expect(await importInto(signer, KEY_MANAGER, [whole(7)])).toMatchObject([{ status: 'imported' }]);
    const again = await signCall(signer.url, key(7), attestation({ source: 70, target: 71, head: rootOf(9) }));
    expect(again.json['reason']).toBe('double_vote');
  });

  it('that a route of whole keys is asked for are in the log of receipts with the reason', async () => {
    await importInto(signer, KEY_MANAGER, [share(1, 3)]);
    expect((await signCall(signer.url, key(1), attestation({ source: 80, target: 81 }))).status).toBe(409);
    await signer.stop();
    const [latest] = await keptBoots(receiptsFolder(deployment.receipts));
    const entries = [...(latest?.entries ?? [])].map((bytes) => bytes instanceof Uint8Array && decodeEntry(bytes));
    const refused = entries.flatMap((entry) => (entry && entry.reason === 'key_is_share' ? [entry] : []));
    expect(refused.map(({ publicKey, signingRoot }) => [Buffer.from(publicKey), signingRoot])).toEqual([
      [Buffer.from(key(1).slice(2), 'hex'), null],
    ]);
  });

  it('are there after a restart, and refused by the portable core, which names the file', async () => {
    signer = await deployment.start();
    expect((await partial(signer, key(1), attestation({ source: 90, target: 91 }))).json['participant_id']).toBe('3');
    await signer.stop();
    signer = await deployment.start(PORTABLE_PROGRAM);
    const line = await signer.logged('an imported key cannot be loaded', { reason: SHARE_REFUSALS.share_unsupported });
    expect(line['file']).toMatch(/^imported\/[0-9a-f]{96}\.json$/);
    expect(await importInto(signer, KEY_MANAGER, [share(8, 1)])).toMatchObject([
      { status: 'error', message: SHARE_REFUSALS.share_unsupported },
    ]);
  });
});

it.skipIf(!addonForTests())('accounts are held while keys load, as publicKeys is, and then complete', async () => {
  const deployment = deployKeys([], {});
  const folder = join(deployment.folder, 'keys');
  writeKeystore(folder, 'slow', testSecret(9), 'password', FULL_SCRYPT);
  writeShare(folder, 'z-share', testShare(1, 1));
  const signer = await deployment.start({ waitFor: 'listening' });
  const [list, one] = await Promise.all(
    ['accounts', `accounts/${key(1)}`].map((path) => call(`${signer.url}/api/v1/eth2/distributed/${path}`)),
  );
  expect([list?.status, JSON.parse(list?.text ?? '').length]).toEqual([200, 1]);
  expect([one?.status, one?.json['composite_public_key']]).toEqual([200, key(1)]);
  await signer.stop();
});
