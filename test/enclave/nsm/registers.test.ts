// What this boot measures: once, and into registers that nobody has used.

import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { extendedOnce } from '../../../common/formats/register.ts';
import { describeNsm, isDebugMode, measureOnce, readMeasurements } from '../../../enclave/measure.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { createNsmEmulator, type NsmEmulator, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../../../rehearsal/nsm/pki.ts';
import type { Nsm } from '../../../signer/tee/nsm.ts';
import { fillMixedRandom, nsmRandomBytes } from '../../../signer/tee/random.ts';

const DIGEST = createHash('sha384').update('a configuration').digest();

let pki: NsmPki;
let emulator: NsmEmulator;
let nsm: Nsm;

beforeEach(async () => {
  pki ??= await createNsmPki();
  emulator = await createNsmEmulator({ pki });
  nsm = createNsm(emulator.exchange);
});

describe('a measurement', () => {
  it('extends its register once and locks it', async () => {
    await measureOnce(nsm, 16, DIGEST);
    expect(emulator.pcr(16)).toEqual({ value: extendedOnce(DIGEST), locked: true });
    await expect(nsm.extendPcr(16, DIGEST)).rejects.toThrow(/ReadOnlyIndex/);
  });

  it('is refused in a register that was extended', async () => {
    await nsm.extendPcr(16, DIGEST);
    await expect(measureOnce(nsm, 16, DIGEST)).rejects.toThrow(/PCR16 was extended before this start/);
  });

  it('is refused in a register that is locked, though nothing is in it', async () => {
    await nsm.lockPcr(17);
    await expect(measureOnce(nsm, 17, DIGEST)).rejects.toThrow(/PCR17 was locked before this start/);
  });

  it('is refused when the register does not keep what it was given', async () => {
    const forgetful: Nsm = { ...nsm, extendPcr: (index) => nsm.extendPcr(index, Buffer.from('something else')) };
    await expect(measureOnce(forgetful, 16, DIGEST)).rejects.toThrow(/PCR16 does not hold what it was extended with/);
    const unlocked: Nsm = { ...nsm, lockPcr: async () => undefined };
    await expect(measureOnce(unlocked, 17, DIGEST)).rejects.toThrow(/PCR17 does not hold/);
  });

  it('is reported with those of the image', async () => {
    await measureOnce(nsm, 16, DIGEST);
    expect(await readMeasurements(nsm)).toEqual({
      0: testPcr(0).toString('hex'),
      1: testPcr(1).toString('hex'),
      2: testPcr(2).toString('hex'),
      8: testPcr(8).toString('hex'),
      16: extendedOnce(DIGEST).toString('hex'),
      17: '00'.repeat(48),
    });
  });
});

describe('debug mode', () => {
  it('is when the registers of the image are all zero', async () => {
    const debug = createNsm((await createNsmEmulator({ pki, debugMode: true })).exchange);
    expect(isDebugMode(await readMeasurements(debug))).toBe(true);
    expect(isDebugMode(await readMeasurements(nsm))).toBe(false);
  });
});

describe('an NSM', () => {
  it('that this program can use has SHA-384 and enough registers', async () => {
    expect(await describeNsm(nsm)).toMatchObject({ digest: 'SHA384', maxPcrs: 32 });
    const with_ = (deviation: object): Nsm => ({
      ...nsm,
      describe: async () => ({ ...(await nsm.describe()), ...deviation }),
    });
    await expect(describeNsm(with_({ digest: 'SHA256' }))).rejects.toThrow(/measures with SHA256/);
    await expect(describeNsm(with_({ maxPcrs: 17 }))).rejects.toThrow(/has 17 registers, and 18 are needed/);
  });

  it('gives as many random bytes as are asked for', async () => {
    const bytes = await nsmRandomBytes(nsm, 600);
    expect(bytes).toHaveLength(600);
    expect(new Set([bytes.subarray(0, 32), bytes.subarray(256, 288), bytes.subarray(512, 544)].map(String)).size).toBe(
      3,
    );
    expect(emulator.operations.filter((operation) => operation === 'GetRandom')).toHaveLength(3);
  });

  it('is mixed into the randomness of keys, and missing there when it fails', async () => {
    const zeros: Nsm = { ...nsm, random: async () => Buffer.alloc(256) };
    const [one, other] = [Buffer.alloc(32), Buffer.alloc(32)];
    await fillMixedRandom(zeros, one); // an NSM that gives nothing takes nothing away
    await fillMixedRandom(zeros, other);
    expect(one.equals(other) || one.equals(Buffer.alloc(32))).toBe(false);
    const broken: Nsm = { ...nsm, random: async () => Buffer.alloc(0) };
    await expect(fillMixedRandom(broken, one)).rejects.toThrow(/no random bytes/);
  });
});
