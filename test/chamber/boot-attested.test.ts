// Custody in an enclave: replicas come to their master key through attested calls only, against key policies that name
// their image. What this image could not open again is never written, and no answer of KMS that is wrong in any way
// becomes a master key.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { createKmsRecipient } from '../../enclave/kms/cms.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import type { KeyBehaviour } from '../../rehearsal/kms/server.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../../rehearsal/nsm/pki.ts';
import type { KmsRecipient } from '../../signer/tee/recipient.ts';
import { bootReplica, fingerprint, type Replica, said } from './replicas.ts';

const IMAGE = testPcr(0).toString('hex');
const OTHER_IMAGE = testPcr(9);

let pki: NsmPki;
let world: CustodyWorld;

beforeAll(async () => {
  pki = await createNsmPki({ at: Date.now() });
  world = await startCustody({ kms: { attestationRoot: pki.rootFingerprint } });
});
afterAll(() => world.close());

/** As an enclave's process. */
async function enclave(options: NsmEmulatorOptions = {}): Promise<KmsRecipient> {
  return createKmsRecipient({ nsm: createNsm((await createNsmEmulator({ pki, ...options })).exchange) });
}

/** Custody keys that decrypt for one image only. */
function ceremonyFor(image = IMAGE, options: { readonly keys?: number; readonly threshold?: number } = {}) {
  const ceremony = world.createCeremony(options);
  for (let key = 0; key < ceremony.kms_keys.length; key++) allow(ceremony, key, image);
  return ceremony;
}

function allow(ceremony: CeremonyBlock, key: number, ...images: string[]): void {
  for (const arn of ceremony.kms_keys[key]?.arns ?? []) {
    world.kms.requireAttestation(arn, { 'kms:RecipientAttestation:ImageSha384': images });
  }
}

function setBehaviour(ceremony: CeremonyBlock, key: number, behaviour: KeyBehaviour): void {
  for (const arn of ceremony.kms_keys[key]?.arns ?? []) world.kms.setBehaviour(arn, behaviour, ['Decrypt']);
}

async function boot(table: string, ceremony: CeremonyBlock, recipient?: KmsRecipient): Promise<Replica> {
  return bootReplica(world, { table, ceremony, kms: { maxAttempts: 1, recipient: recipient ?? (await enclave()) } });
}

function rows(table: string): Promise<unknown[]> {
  return Promise.all(['MASTER_KEY', 'ROOT_TOKEN_BOOTSTRAP', 'AUTH_REVISION'].map((pk) => world.row(table, pk)));
}

describe('auto-init', () => {
  it('and later replicas of the same image agree on a master key that KMS never sent in the clear', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    const first = await boot(table, ceremony);
    const second = await boot(table, ceremony);
    expect(said(first, 'initialised')).toBe(true);
    expect(fingerprint(second)).toBe(fingerprint(first));
    expect(second.log.filter(({ level }) => level !== 'info')).toEqual([]);
    const decrypts = world.kms.calls.filter(({ operation }) => operation === 'Decrypt');
    expect(decrypts.length).toBe(6);
    expect(decrypts.every(({ document }) => document !== undefined)).toBe(true);
  });

  it('under keys that this image may encrypt to and not decrypt with writes nothing', async () => {
    const table = await world.createTable();
    const failure = boot(table, ceremonyFor(OTHER_IMAGE.toString('hex')));
    await expect(failure).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringMatching(/needs 2 of its 3 custody keys and 0 served.*attestation policy mismatch/s),
    });
    expect(await rows(table)).toEqual([undefined, undefined, undefined]);
  });

  it('with one key too few that opens again writes nothing; with the threshold it writes, and names the key', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    for (const key of [0, 1]) allow(ceremony, key, OTHER_IMAGE.toString('hex'));
    await expect(boot(table, ceremony)).rejects.toMatchObject({ startupFailure: 8 });
    expect(await rows(table)).toEqual([undefined, undefined, undefined]);
    allow(ceremony, 0, IMAGE);
    const replica = await boot(table, ceremony);
    expect(said(replica, 'initialised')).toBe(true);
    expect(
      replica.log.some(({ fields }) => String(fields['custody_key']).includes('attestation policy mismatch')),
    ).toBe(true);
    expect(fingerprint(await boot(table, ceremony))).toBe(fingerprint(replica));
  });

  it.each<KeyBehaviour>(['plaintext_beside', 'plaintext_instead', 'foreign_envelope', 'truncated_envelope'])(
    'with a threshold of keys whose answers are %s writes nothing',
    async (behaviour) => {
      const table = await world.createTable();
      const ceremony = ceremonyFor();
      for (const key of [0, 1]) setBehaviour(ceremony, key, behaviour);
      await expect(boot(table, ceremony)).rejects.toMatchObject({ startupFailure: 8 });
      expect(await rows(table)).toEqual([undefined, undefined, undefined]);
    },
  );
});

describe('auto-unseal', () => {
  it('of another image is denied: startup failure 8 says attestation policy mismatch', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    await boot(table, ceremony);
    const stranger = await enclave({ pcrs: { 0: OTHER_IMAGE } });
    await expect(boot(table, ceremony, stranger)).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('attestation policy mismatch'),
    });
  });

  it('outside an enclave is denied', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    await boot(table, ceremony);
    await expect(bootReplica(world, { table, ceremony, kms: { maxAttempts: 1 } })).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('access denied'),
    });
  });

  it('survives one key that denies this image', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    const first = await boot(table, ceremony);
    allow(ceremony, 2, OTHER_IMAGE.toString('hex'));
    const second = await boot(table, ceremony);
    expect(fingerprint(second)).toBe(fingerprint(first));
    expect(said(second, 'the others suffice')).toBe(true);
  });

  it('survives a share that another key gave too, and names it: it counts once', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor();
    const first = await boot(table, ceremony);
    setBehaviour(ceremony, 0, 'swapped_envelope');
    const second = await boot(table, ceremony);
    expect(fingerprint(second)).toBe(fingerprint(first));
    expect(second.log.some(({ fields }) => String(fields['custody_key']).includes('is not the share'))).toBe(true);
  });

  it('with shares that came for one another gives the same master key: the share binding proves it, not the order', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor(IMAGE, { keys: 2, threshold: 2 });
    const first = await boot(table, ceremony);
    for (const key of [0, 1]) setBehaviour(ceremony, key, 'swapped_envelope');
    expect(fingerprint(await boot(table, ceremony))).toBe(fingerprint(first));
  });

  it('with shares of another ceremony is startup failure 9, never a master key', async () => {
    const [table, other] = [await world.createTable(), await world.createTable()];
    const ceremony = ceremonyFor(IMAGE, { keys: 2, threshold: 2 });
    await boot(table, ceremony);
    await boot(other, ceremonyFor());
    for (const key of [0, 1]) setBehaviour(ceremony, key, 'swapped_envelope');
    await expect(boot(table, ceremony)).rejects.toMatchObject({
      startupFailure: 9,
      message: expect.stringContaining('the share binding of the MASTER_KEY row does not verify'),
    });
  });

  it('with envelopes that are replayed: those of another process open nowhere', async () => {
    const table = await world.createTable();
    const ceremony = ceremonyFor(IMAGE, { keys: 2, threshold: 2 });
    await boot(table, ceremony);
    for (const key of [0, 1]) setBehaviour(ceremony, key, 'replayed_envelope');
    await expect(boot(table, ceremony)).rejects.toMatchObject({
      startupFailure: 8,
      message: expect.stringContaining('its envelope is not one that this enclave can open'),
    });
  });

  it('with envelopes that are replayed: those of this process, of another master key, fail the share binding', async () => {
    const [table, other] = [await world.createTable(), await world.createTable()];
    const ceremony = ceremonyFor(IMAGE, { keys: 2, threshold: 2 });
    const process = await enclave();
    await boot(other, ceremony, process);
    await boot(table, ceremony, process);
    for (const key of [0, 1]) setBehaviour(ceremony, key, 'replayed_envelope');
    await expect(boot(table, ceremony, process)).rejects.toMatchObject({ startupFailure: 9 });
  });
});

describe('rotation', () => {
  it('to keys that this image cannot decrypt with leaves the row as it is', async () => {
    const table = await world.createTable();
    const old = ceremonyFor();
    const first = await boot(table, old);
    const before = await rows(table);
    const next = { ...ceremonyFor(OTHER_IMAGE.toString('hex')), generation: 2, retired_kms_keys: old.kms_keys };
    await expect(boot(table, next)).rejects.toMatchObject({ startupFailure: 8 });
    expect(await rows(table)).toEqual(before);
    for (const key of [0, 1, 2]) allow(next, key, IMAGE);
    const rotated = await boot(table, next);
    expect(said(rotated, 'rotated')).toBe(true);
    expect(fingerprint(rotated)).toBe(fingerprint(first));
  });
});
