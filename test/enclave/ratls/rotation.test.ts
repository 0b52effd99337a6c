// The attested certificate and its rotation: what is in it, how long it lives, when the next one comes, and what
// happens when none does.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { createNsm } from '../../../enclave/nsm/client.ts';
import type { RatlsIdentity } from '../../../enclave/ratls/identity.ts';
import { EVIDENCE_MARGIN_MS, RatlsRotation, type RotationOptions } from '../../../enclave/ratls/rotation.ts';
import { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';
import { createNsmEmulator, type NsmEmulator, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import type { NsmDevice } from '../../../signer/tee/nsm.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { START, type TestClock, testClock } from '../../support/stateful-auth.ts';

const [MINUTE, HOUR] = [60, 3600];
const DAILY: RotationOptions = { intervalSeconds: 24 * HOUR - 1, validitySeconds: 24 * HOUR };
const HOURLY: RotationOptions = { intervalSeconds: HOUR, validitySeconds: 24 * HOUR };

let clock: TestClock;
let log: ReturnType<typeof recordingLog>;
let emulator: NsmEmulator;
let device: NsmDevice;
let outcomes: string[];
let delays: number[];
let cancelled: number;
let pending: (() => void) | undefined;

beforeEach(async () => {
  clock = testClock();
  log = recordingLog();
  emulator = await createNsmEmulator({ clock });
  device = emulator.exchange;
  outcomes = [];
  delays = [];
  cancelled = 0;
  pending = undefined;
});

function rotation(options: RotationOptions = HOURLY): RatlsRotation {
  return new RatlsRotation(options, {
    nsm: createNsm((request) => device(request)),
    clock,
    log,
    onRotation: (outcome) => outcomes.push(outcome === 'failed' ? 'failed' : outcome.identity.fingerprint),
    schedule(run, afterMs) {
      pending = run;
      delays.push(afterMs);
      return () => {
        cancelled += 1;
      };
    },
  });
}

async function started(options?: RotationOptions): Promise<RatlsRotation> {
  const subject = rotation(options);
  await subject.start();
  return subject;
}

/** Lets the pause that was asked for pass, and the rotation come out. */
async function next(): Promise<void> {
  const asked = delays.length;
  clock.advance((delays.at(-1) ?? 0) / 1000);
  pending?.();
  while (delays.length === asked) await new Promise(setImmediate);
}

function inForce(subject: RatlsRotation): RatlsIdentity {
  const identity = subject.current();
  if (identity === undefined) throw new Error('there is no identity');
  return identity;
}

function failing(): NsmDevice {
  return () => Promise.reject(Object.assign(new Error('no such device'), { code: 'ENODEV' }));
}

describe('the identity', () => {
  it('is a fresh P-256 key in a self-signed certificate, with evidence of that key and this image', async () => {
    const { cert, key, spki } = inForce(await started());
    const x509 = new X509Certificate(cert);
    expect(x509.publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' });
    expect(x509.publicKey.export({ type: 'spki', format: 'der' })).toEqual(spki);
    expect(x509.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(x509.ca).toBe(false);
    expect(x509.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']); // what Node calls so is the extended one: serverAuth
    const { verdict } = verifyCertificate(x509.raw, {
      provider: { name: 'test', rootSha256: emulator.rootFingerprint },
      at: clock.now(),
      maxAgeSeconds: 1,
      referenceValues: new Map([0, 1, 2].map((index) => [index, [testPcr(index).toString('hex')]])),
    });
    expect(verdict).toMatchObject({
      authentic: true,
      expected: true,
      document: { publicKey: undefined, nonce: undefined },
    });
  });

  it('never outlives its evidence, whatever validity is configured', async () => {
    clock.advance(0.7); // certificates count whole seconds
    const identity = inForce(await started(DAILY));
    expect(identity.evidenceExpiresAt).toBeLessThanOrEqual(START + 3 * HOUR * 1000 + 700);
    expect(identity.expiresAt).toBeLessThanOrEqual(identity.evidenceExpiresAt);
    expect(new X509Certificate(identity.cert).validToDate.getTime()).toBe(identity.expiresAt);
  });

  it('ends before its evidence when a shorter validity is configured', async () => {
    const identity = inForce(await started({ intervalSeconds: 30, validitySeconds: 10 * MINUTE }));
    expect(identity.expiresAt).toBe(START + 10 * MINUTE * 1000);
  });

  it('begins five minutes ago, for clients whose clock is behind, and is no longer for it', async () => {
    const { cert, expiresAt } = inForce(await started({ intervalSeconds: 30, validitySeconds: 10 * MINUTE }));
    expect(new X509Certificate(cert).validFromDate.getTime()).toBe(START - 5 * MINUTE * 1000);
    expect(expiresAt).toBe(START + 10 * MINUTE * 1000);
  });

  it.each([
    ['ahead', 45_000, 45_000],
    ['behind', -45_000, -45_000],
    ['as the own', 0, 0],
  ])('says by how much the NSM’s clock is %s', async (_, apartMs, nsmAheadMs) => {
    emulator = await createNsmEmulator({ clock, timestamp: START + apartMs });
    device = emulator.exchange;
    expect(inForce(await started()).nsmAheadMs).toBe(nsmAheadMs);
    const warned = log.lines.filter(({ message }) => message.includes('clock of the Nitro Secure Module'));
    expect(warned.map(({ level, fields }) => [level, fields])).toEqual(
      apartMs === 0 ? [] : [['warn', { nsm_ahead_seconds: apartMs / 1000 }]],
    );
  });

  it('takes a slow answer for no difference of the clocks', async () => {
    device = async (request) => {
      clock.advance(60);
      const answer = await emulator.exchange(request);
      clock.advance(60);
      return answer;
    };
    expect(inForce(await started()).nsmAheadMs).toBe(0);
    expect(log.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('has another key at each rotation, and the old key is wiped', async () => {
    const subject = await started();
    const first = inForce(subject);
    await next();
    const second = inForce(subject);
    expect(second.spki.equals(first.spki)).toBe(false);
    expect(first.key.equals(Buffer.alloc(first.key.length))).toBe(true);
    expect(second.key.toString()).toContain('PRIVATE KEY');
    expect(outcomes).toEqual([first.fingerprint, second.fingerprint]);
  });
});

describe('rotation', () => {
  it('comes after the configured interval', async () => {
    await started(HOURLY);
    expect(delays).toEqual([HOUR * 1000]);
  });

  it('comes 15 minutes before the evidence ends, when that is earlier', async () => {
    await started(DAILY);
    expect(delays).toEqual([3 * HOUR * 1000 - EVIDENCE_MARGIN_MS]);
  });

  it('comes as soon when the clock is behind: what lives three hours does not become older by that', async () => {
    const ahead = testClock();
    ahead.advance(40 * 24 * HOUR);
    emulator = await createNsmEmulator({ clock: ahead, pki: await createNsmPki({ at: ahead.now() }) });
    device = emulator.exchange;
    await started({ intervalSeconds: 30 * 24 * HOUR, validitySeconds: 31 * 24 * HOUR });
    expect(delays).toEqual([3 * HOUR * 1000 - EVIDENCE_MARGIN_MS]);
  });

  it('goes on at a pace while the NSM gives the leaf that is about to end, and has the next one in time', async () => {
    const subject = await started(DAILY);
    const first = inForce(subject).evidenceExpiresAt;
    await next();
    expect(inForce(subject).evidenceExpiresAt).toBe(first); // the emulator keeps its leaf until a minute before its end
    while (inForce(subject).evidenceExpiresAt === first) {
      await next();
      expect(delays.at(-1)).toBeGreaterThanOrEqual(1000);
    }
    expect(clock.now()).toBeLessThan(first);
    expect(delays.length).toBeLessThan(40);
    expect(outcomes).not.toContain('failed');
  });

  it('of half a minute is half a minute', async () => {
    await started({ intervalSeconds: 30, validitySeconds: HOUR });
    await next();
    expect(delays).toEqual([30_000, 30_000]);
  });

  it('that fails is tried again soon, ever later, and the identity in force goes on', async () => {
    const subject = await started();
    const identity = inForce(subject);
    device = failing();
    for (let attempt = 0; attempt < 10; attempt++) await next();
    expect(subject.current()).toBe(identity);
    const [, ...retries] = delays;
    for (const [index, delay] of retries.entries()) {
      const most = Math.min(60_000, 1000 * 2 ** index);
      expect(delay).toBeGreaterThanOrEqual(most / 2);
      expect(delay).toBeLessThanOrEqual(most);
    }
    expect(outcomes.slice(1)).toEqual(Array(10).fill('failed'));
    expect(log.lines.at(-1)).toMatchObject({
      level: 'warn',
      fields: { failures: 10, error: expect.stringContaining('no such device') },
    });
  });

  it('that keeps failing leaves nothing to serve with when the evidence ends, and says so', async () => {
    const subject = await started();
    const { expiresAt } = inForce(subject);
    device = failing();
    while (clock.now() < expiresAt) {
      expect(subject.current()).toBeDefined();
      await next();
    }
    expect(subject.current()).toBeUndefined();
    expect(log.lines.at(-1)).toMatchObject({ level: 'error', message: expect.stringContaining('refused') });
    device = emulator.exchange;
    await next();
    expect(inForce(subject).expiresAt).toBeGreaterThan(clock.now());
    expect(delays.at(-1)).toBe(HOUR * 1000);
  });

  it('does not begin without evidence', async () => {
    device = failing();
    const subject = rotation();
    await expect(subject.start()).rejects.toMatchObject({ code: 'ENODEV' });
    expect(subject.current()).toBeUndefined();
    expect(delays).toEqual([]);
  });

  it('ends when it is stopped: nothing is served, nothing comes later, the key is wiped', async () => {
    const subject = await started();
    const { key } = inForce(subject);
    const before = delays.length;
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device = async (request) => {
      await held;
      return emulator.exchange(request);
    };
    pending?.(); // a rotation is under way
    subject.stop();
    release();
    await expect.poll(() => emulator.operations.length).toBe(2);
    await new Promise(setImmediate);
    expect(subject.current()).toBeUndefined();
    expect(key.equals(Buffer.alloc(key.length))).toBe(true);
    expect([delays.length, cancelled, outcomes.length]).toEqual([before, 1, 1]);
  });
});
