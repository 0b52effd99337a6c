// The pool of keystore workers: how many at once, how much memory, what it refuses, and that it goes on.

import { describe, expect, it } from 'vitest';
import { type Keystore, keyDerivationMemoryBytes } from '../../../signer/keys/keystores/cipher.ts';
import { concurrentKeystores, KeystorePool, memoryLimitBytes } from '../../../signer/keys/keystores/pool.ts';
import { encryptKeystore, LIGHT_SCRYPT, testSecret } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { parsed, pool, withMember } from './keystore-set-up.ts';

const GIBIBYTE = 2 ** 30;

const scryptOf = (n: number) => ({ dklen: 32, n, r: 8, p: 1, salt: '00'.repeat(32) });

describe('the pool of keystore workers', () => {
  it.each([
    // option, cores, memory in GiB → at once
    [128, 2, 64, 2],
    [128, 64, 64, 64],
    [128, 64, 8, 8],
    [128, 64, 3.9, 3],
    [1, 64, 64, 1],
    [128, 64, 0.25, 1],
  ])('of option %d, %d cores and %d GiB decrypts %d at once', (keystoreLoadConcurrency, cores, gibibytes, expected) => {
    const options = { keystoreLoadConcurrency, cores, memoryLimitBytes: gibibytes * GIBIBYTE };
    expect(concurrentKeystores(options)).toBe(expected);
  });

  it('knows the memory limit of this process', () => {
    expect(memoryLimitBytes()).toBeGreaterThan(2 ** 27);
    expect(memoryLimitBytes()).toBeLessThan(2 ** 50);
  });

  it('refuses a keystore that would take more than half of the memory, and takes the usual one on any machine', async () => {
    const small = new KeystorePool(
      { keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE / 4, cores: 1 },
      { log: recordingLog() },
    );
    const heavy = parsed(withMember('crypto.kdf.params', scryptOf(2 ** 19)));
    const usual = parsed(withMember('crypto.kdf.params', scryptOf(2 ** 18)));
    expect(keyDerivationMemoryBytes(heavy.keyDerivation)).toBeGreaterThan(GIBIBYTE / 2);
    expect(await small.decrypt(heavy, Buffer.from('p'))).toEqual({ refused: 'too_much_memory' });
    expect(await small.decrypt(usual, Buffer.from('p'))).toEqual({ refused: 'wrong_password' });
    await small.close();
  });

  it('goes on when a keystore makes its worker fail', async () => {
    const log = recordingLog();
    const sick = new KeystorePool({ keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE, cores: 1 }, { log });
    const good = parsed(encryptKeystore(testSecret(1), 'p'));
    const impossible: Keystore = {
      ...good,
      keyDerivation: { kind: 'scrypt', n: 3, r: 1, p: 1, salt: Buffer.alloc(8) },
    };
    expect(await sick.decrypt(impossible, Buffer.from('p'))).toEqual({ refused: 'decryption_failed' });
    expect(log.lines).toMatchObject([{ level: 'error', fields: { fault: expect.stringMatching(/SCRYPT/) } }]);
    expect(await sick.decrypt(good, Buffer.from('p'))).toEqual({ secretKey: testSecret(1) });
    await sick.close();
  });

  it('works again after its idle workers ended', async () => {
    const keystore = parsed(encryptKeystore(testSecret(2), 'p'));
    expect(await pool.decrypt(keystore, Buffer.from('p'))).toEqual({ secretKey: testSecret(2) });
    await pool.endIdleWorkers();
    expect(await pool.decrypt(keystore, Buffer.from('p'))).toEqual({ secretKey: testSecret(2) });
  });

  it('answers every one of many, more than it has workers, in any order of cost', async () => {
    const two = new KeystorePool(
      { keystoreLoadConcurrency: 2, memoryLimitBytes: 8 * GIBIBYTE, cores: 2 },
      { log: recordingLog() },
    );
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, number) => {
        const cost = number % 3 === 0 ? LIGHT_SCRYPT : { kind: 'pbkdf2' as const, iterations: 1 + (number % 5) * 1000 };
        return two.decrypt(parsed(encryptKeystore(testSecret(number), `${number}`, cost)), Buffer.from(`${number}`));
      }),
    );
    expect(answers).toEqual(Array.from({ length: 50 }, (_, number) => ({ secretKey: testSecret(number) })));
    await two.close();
  });

  it('refuses when too many wait, and rejects what waits when it is closed', async () => {
    const one = new KeystorePool(
      { keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE, cores: 1 },
      { log: recordingLog() },
    );
    const keystore = parsed(encryptKeystore(testSecret(1), 'p'));
    const settled = Promise.allSettled(
      Array.from({ length: 1 + 1024 + 1 }, () => one.decrypt(keystore, Buffer.from('p'))),
    );
    await one.close();
    const reasons = (await settled).map((result) => (result.status === 'rejected' ? result.reason.reason : 'answered'));
    expect(reasons.at(-1)).toBe('overloaded');
    expect(reasons.filter((reason) => reason === 'overloaded')).toHaveLength(1);
    expect(reasons.filter((reason) => reason === 'shutting_down').length).toBeGreaterThanOrEqual(1024);
    await expect(one.decrypt(keystore, Buffer.from('p'))).rejects.toMatchObject({ reason: 'shutting_down' });
  });
});
