// What `strongroom setup kms-policy` prints, and what it refuses: nobody is locked out of a key, nobody who administers
// it opens anything.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ADMINISTRATION_ACTIONS, MAX_KEY_POLICY_BYTES } from '../../setup/key-policy.ts';
import { PHASES } from '../../setup/policy-document.ts';
import {
  ACCOUNT,
  ADMIN,
  attested,
  CREDENTIALS,
  enclaveKey,
  folder,
  hex,
  IMAGE,
  may,
  PARENT,
  PCRS,
  principal,
  printed,
  run,
  SEALER,
  SHARE,
  TABLE_USER,
  WHO,
} from './printed-documents.ts';

describe('the policy of a custody key', () => {
  it.each(PHASES)(
    'in the phase %s locks out nobody who administers the key, and gives them nothing else',
    async (phase) => {
      const document = await enclaveKey(...PCRS, '--phase', phase, '--sealer', SEALER);
      for (const action of ADMINISTRATION_ACTIONS) {
        expect([action, may(document, ADMIN, action)]).toEqual([action, true]);
        // when the administrator's role is gone: the root user of its account, and nobody else of it
        expect([action, may(document, `arn:aws:iam::${ACCOUNT}:root`, action)]).toEqual([action, true]);
        for (const stranger of [principal('x'), principal('x', '999988887777')]) {
          expect([action, stranger, may(document, stranger, action)]).toEqual([
            action,
            stranger,
            action === 'kms:DescribeKey' && stranger === PARENT,
          ]);
        }
      }
      for (const caller of [ADMIN, `arn:aws:iam::${ACCOUNT}:root`, principal('x')]) {
        for (const action of [
          'kms:Encrypt',
          'kms:Decrypt',
          'kms:CreateGrant',
          'kms:ReEncryptFrom',
          'kms:ReEncryptTo',
        ]) {
          expect([caller, action, may(document, caller, action, { ...SHARE, ...attested(IMAGE) })]).toEqual([
            caller,
            action,
            false,
          ]);
        }
      }
      expect(ADMINISTRATION_ACTIONS).toContain('kms:PutKeyPolicy');
    },
  );

  it('decrypts for the image, its configuration and its ceremony together, and this deployment', async () => {
    const document = await enclaveKey(...PCRS);
    const decrypts = (context: Readonly<Record<string, string>>) => may(document, PARENT, 'kms:Decrypt', context);
    expect(decrypts({ ...SHARE, ...attested(IMAGE) })).toBe(true);
    expect(decrypts({ ...CREDENTIALS, ...attested(IMAGE) })).toBe(true);
    expect(decrypts(SHARE)).toBe(false);
    for (const register of ['PCR0', 'PCR16', 'PCR17'] as const) {
      expect([register, decrypts({ ...SHARE, ...attested({ ...IMAGE, [register]: hex('f') }) })]).toEqual([
        register,
        false,
      ]);
    }
    expect(decrypts({ ...SHARE, 'kms:EncryptionContext:deployment': 'other', ...attested(IMAGE) })).toBe(false);
    expect(decrypts(attested(IMAGE))).toBe(false);
    expect(may(document, principal('x'), 'kms:Decrypt', { ...SHARE, ...attested(IMAGE) })).toBe(false);
    expect(may(document, PARENT, 'kms:PutKeyPolicy')).toBe(false);
    expect(may(document, PARENT, 'kms:DescribeKey')).toBe(true);
  });

  it('for two images accepts each of them whole, and no mixture of their registers', async () => {
    const document = await enclaveKey(...PCRS, '--pcrs', '@next.json');
    const next = { ...IMAGE, PCR0: hex('d'), PCR16: hex('e') };
    const decrypts = (image: typeof IMAGE) => may(document, PARENT, 'kms:Decrypt', { ...SHARE, ...attested(image) });
    expect([IMAGE, next].map(decrypts)).toEqual([true, true]);
    expect(
      [
        { ...IMAGE, PCR16: next.PCR16 },
        { ...next, PCR16: IMAGE.PCR16 },
      ].map(decrypts),
    ).toEqual([false, false]);
  });

  it('encrypts shares in a phase that needs it, and table credentials for those who seal them', async () => {
    const encrypts = async (phase: string, caller: string, context: Readonly<Record<string, string>>) =>
      may(await enclaveKey(...PCRS, '--phase', phase, '--sealer', SEALER), caller, 'kms:Encrypt', context);
    for (const phase of PHASES) {
      expect(await encrypts(phase, PARENT, SHARE)).toBe(false);
      expect(await encrypts(phase, PARENT, CREDENTIALS)).toBe(false);
      expect(await encrypts(phase, TABLE_USER, SHARE)).toBe(phase !== 'running');
      expect(await encrypts(phase, TABLE_USER, CREDENTIALS)).toBe(false);
    }
    const other = { ...SHARE, 'kms:EncryptionContext:deployment': 'other' };
    expect(await encrypts('rotation', TABLE_USER, other)).toBe(false);
    expect(await encrypts('running', SEALER, CREDENTIALS)).toBe(true);
    expect(await encrypts('first-boot', SEALER, SHARE)).toBe(false);
  });

  it('says when no image has the PCR16 of the configuration: nobody could start with it', async () => {
    const foreign = await run('kms-policy', '-c', '@enclave.yaml', ...WHO, ...PCRS);
    expect(foreign).toMatchObject({ code: 0, stderr: expect.stringContaining('no image has the PCR16 of') });
    const own = await run('kms-policy', '-c', '@enclave.yaml', ...WHO, '--pcrs', '@fetched.json', ...PCRS);
    expect(own.stderr).not.toContain('no image has the PCR16 of');
  });

  it('is of one key, and says what the administrators of several could do', async () => {
    const { code, stderr } = await run('kms-policy', '-c', '@service.yaml', ...WHO);
    expect(code).toBe(0);
    expect(stderr).toContain('whoever administers as many keys as the ceremony needs (kms_threshold) can open');
  });

  it('of parents that write the tables lets them encrypt, and denies nothing of it', async () => {
    const document = await printed('kms-policy', '-c', '@unsafe.yaml', ...WHO, ...PCRS, '--phase', 'first-boot');
    expect(may(document, PARENT, 'kms:Encrypt', SHARE)).toBe(true);
  });

  it('of an image that fetches has the PCR16 of the configuration, and says so', async () => {
    const { code, stdout, stderr } = await run('kms-policy', '-c', '@enclave.yaml', ...WHO, '--pcrs', '@fetched.json');
    expect(code).toBe(0);
    expect(stderr).toContain('fetched.json has no PCR16');
    const check = await import('../../parent-proxy/configuration.ts');
    const { readFileSync } = await import('node:fs');
    const loaded = check.readProxyConfiguration(readFileSync(join(folder, 'enclave.yaml')), 'enclave.yaml');
    expect(loaded.ok && loaded.configuration.pcr16).toMatch(/^[0-9a-f]{96}$/);
    expect(stdout).toContain(String(loaded.ok && loaded.configuration.pcr16));
    const { stdout: given } = await run(
      'kms-policy',
      '-c',
      '@enclave.yaml',
      ...WHO,
      '--pcrs',
      '@fetched.json',
      '--pcr',
      `16=${hex('9')}`,
    );
    expect(given).toContain(hex('9'));
  });

  it('of a service that runs in no enclave asks for no attestation', async () => {
    const document = await printed('kms-policy', '-c', '@service.yaml', ...WHO);
    expect(may(document, PARENT, 'kms:Decrypt', SHARE)).toBe(true);
    expect(may(document, ADMIN, 'kms:Decrypt', SHARE)).toBe(false);
  });

  it.each([
    [
      'a first boot in which nobody encrypts',
      ['-c', '@enclave.yaml', ...WHO, ...PCRS, '--phase', 'first-boot'],
      'no table user is named',
    ],
    [
      'a parent that encrypts',
      ['-c', '@enclave.yaml', ...WHO, ...PCRS, '--table-user', PARENT],
      'encrypts nothing: whoever holds a parent could write a master key',
    ],
    ['a parent that seals', ['-c', '@enclave.yaml', ...WHO, ...PCRS, '--sealer', PARENT], 'encrypts nothing'],
    ['a table user of a service', ['-c', '@service.yaml', ...WHO, '--table-user', TABLE_USER], 'the signers encrypt'],
    ['an enclave without its image', ['-c', '@enclave.yaml', ...WHO], 'name its image with --pcrs'],
    ['an image of no enclave', ['-c', '@service.yaml', ...WHO, ...PCRS], 'tee.platform off'],
    [
      'an administrator who is the signer',
      ['-c', '@service.yaml', '--administrator', PARENT, '--signer', PARENT],
      'could open the master key',
    ],
    [
      'administrators of two accounts',
      ['-c', '@service.yaml', ...WHO, '--administrator', principal('b', '999988887777')],
      'of another account',
    ],
    [
      'a session',
      ['-c', '@service.yaml', '--administrator', ADMIN, '--signer', `arn:aws:sts::${ACCOUNT}:assumed-role/a/b`],
      'name its role',
    ],
    [
      'the account as an administrator',
      ['-c', '@service.yaml', '--administrator', `arn:aws:iam::${ACCOUNT}:root`, '--signer', PARENT],
      'is not the ARN of a role or a user',
    ],
    ['no administrator', ['-c', '@service.yaml', '--signer', PARENT], '--administrator ARN is needed'],
    ['registers of debug mode', ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@debug.json'], 'debug mode'],
    ['an image of any ceremony', ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@foreign.json'], 'PCR17 is missing'],
    [
      'a file that is not there',
      ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@none.json'],
      'cannot be read (ENOENT): there is no such file',
    ],
    [
      'an unknown phase',
      ['-c', '@service.yaml', ...WHO, '--phase', 'steady'],
      '--phase is one of running, first-boot, rotation',
    ],
    ['a stray word', ['-c', '@service.yaml', ...WHO, 'now'], 'flags only'],
    ['a signer without a state', ['-c', '@stateless.yaml', ...WHO], 'there is no custody ceremony'],
    [
      'more images than KMS takes',
      ['-c', '@enclave.yaml', ...WHO, ...Array.from({ length: 60 }, () => PCRS).flat()],
      `KMS takes ${MAX_KEY_POLICY_BYTES}`,
    ],
  ])('refuses %s, with exit code 1 and nothing on stdout', async (_what, argv, words) => {
    const { code, stdout, stderr } = await run('kms-policy', ...argv);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^strongroom setup kms-policy: /);
    expect(stderr).toContain(words);
  });
});

it('a mistyped command is told from one that exists', async () => {
  expect(await run()).toMatchObject({ code: 1, stdout: '' });
  expect((await run('kms-polcy')).stderr).toContain('did you mean kms-policy?');
});
