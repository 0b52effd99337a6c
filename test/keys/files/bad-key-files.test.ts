// Bad key files: each is reported by file, document and reason, the others load, and no secret is in what is said.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  encryptKeystore,
  LIGHT_PBKDF2,
  LIGHT_SCRYPT,
  publicKeyOf,
  testSecret,
  writeKeystore,
  writeRawKey,
} from '../../support/keys.ts';
import { hex, keystoreText, load, rawText, write } from './key-documents.ts';
import { at, directory, log, store } from './key-folder.ts';

function writeBad(json: string, password: string | Buffer) {
  write('bad.json', json);
  write('bad.password', password);
  write('bad.yaml', keystoreText('bad.json', 'bad.password'));
}

function writeBadKeystore(password: string | Buffer, change: (json: string) => string = (json) => json) {
  writeBad(change(JSON.stringify(encryptKeystore(testSecret(50), 'p'))), password);
}

describe('bad files are reported, each by file, document and reason, and the others load', () => {
  const zero = Buffer.alloc(32);
  const order = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001', 'hex');
  const cases: readonly (readonly [name: string, make: () => void, reason: RegExp])[] = [
    ['wrong password', () => writeBadKeystore('other password'), /^the password does not open the keystore$/],
    ['empty password file', () => writeBadKeystore('\n'), /bad\.password: its first line is empty$/],
    ['password that is not UTF-8', () => writeBadKeystore(Buffer.from('ff', 'hex')), /^the password is not UTF-8$/],
    [
      'password file of a megabyte',
      () => writeBadKeystore('p'.repeat(2 ** 20)),
      /bad\.password: larger than 4096 bytes$/,
    ],
    ['truncated JSON', () => writeBadKeystore('p', (json) => json.slice(0, -10)), /bad\.json: not JSON$/],
    ['empty keystore', () => writeBadKeystore('p', () => ''), /bad\.json: not JSON$/],
    [
      'keystore of a megabyte',
      () => writeBadKeystore('p', (json) => json.padEnd(2 ** 20)),
      /bad\.json: larger than 65536 bytes$/,
    ],
    [
      'keystore version 3',
      () => writeBadKeystore('p', (json) => json.replace('"version":4', '"version":3')),
      /bad\.json: version: /,
    ],
    [
      'public key of another key',
      () =>
        writeBadKeystore('p', (json) =>
          json.replace(publicKeyOf(testSecret(50)).slice(2), publicKeyOf(testSecret(51)).slice(2)),
        ),
      /^the private key does not belong to the public key that the keystore names$/,
    ],
    [
      'huge scrypt parameters',
      () => writeBadKeystore('p', (json) => json.replace(/"kdf":\{.*?\},"message"/, `"kdf":${HUGE_SCRYPT},"message"`)),
      /scrypt would take 1048577 MiB, the limit is 1040 MiB$/,
    ],
    ['missing keystore', () => write('bad.yaml', keystoreText('none.json', 'p')), /none\.json: does not exist$/],
    [
      'missing password file',
      () => {
        writeBadKeystore('p');
        renameSync(at('bad.password'), at('gone.password'));
      },
      /bad\.password: does not exist$/,
    ],
    ['zero key', () => write('bad.yaml', rawText(zero)), /^the private key is zero or not below the group order$/],
    ['key that is the group order', () => write('bad.yaml', rawText(order)), /^the private key is zero or not below/],
    [
      'keystore of the group order',
      () => writeBad(JSON.stringify(encryptKeystore(order, 'p', LIGHT_PBKDF2, '')), 'p'),
      /^the private key is zero or not below the group order$/,
    ],
    [
      'unsupported type',
      () => write('bad.yaml', 'type: azure-secret\nkeyType: BLS\n'),
      /^unsupported type azure-secret$/,
    ],
    ['another keyType', () => write('bad.yaml', 'type: file-raw\nkeyType: ED25519\n'), /^unsupported keyType ED25519$/],
    ['empty file', () => write('bad.yaml', ''), /^describes no key$/],
    ['not YAML', () => write('bad.yaml', 'type: "file-raw\n'), /^line 2: a character is missing/],
    ['directory named like a descriptor', () => mkdirSync(at('bad.yaml')), /^not a regular file$/],
    ['dangling link', () => symlinkSync('nowhere', at('bad.yaml')), /^does not exist$/],
    ['link to itself', () => symlinkSync('bad.yaml', at('bad.yaml')), /^too many symbolic links$/],
    ['pipe, which would block a reader', () => execFileSync('mkfifo', [at('bad.yaml')]), /^not a regular file$/],
    ['descriptor of two megabytes', () => write('bad.yaml', '#'.repeat(2 ** 21)), /^larger than 1048576 bytes$/],
  ];
  const HUGE_SCRYPT = JSON.stringify({
    function: 'scrypt',
    params: { dklen: 32, n: 2 ** 30, r: 8, p: 1, salt: '00' },
  }).slice(0, -1);

  it.each(cases)('%s', async (_name, make, reason) => {
    writeRawKey(directory.path, 'a-good', testSecret(1));
    writeKeystore(directory.path, 'z-good', testSecret(2), 'p');
    make();
    const result = await load();
    expect(result.loaded).toBe(2);
    expect(result.failures).toEqual([{ file: at('bad.yaml'), document: 1, reason: expect.stringMatching(reason) }]);
    expect(log.lines.filter((line) => line.level === 'error')).toHaveLength(1);
    expect(store.countBySource()['filesystem']).toBe(2);
  });

  it.skipIf(process.getuid?.() === 0)('file that may not be read', async () => {
    write('bad.yaml', rawText(testSecret(1)));
    chmodSync(at('bad.yaml'), 0);
    expect((await load()).failures).toMatchObject([{ reason: 'permission denied' }]);
  });

  it('two documents, one bad: the good one loads, the bad one is named by its number', async () => {
    write('both.yaml', `${rawText(testSecret(1))}---\n${rawText(zero)}`);
    const result = await load();
    expect(result).toMatchObject({ loaded: 1, failures: [{ file: at('both.yaml'), document: 2 }] });
  });

  it('all of them together, in the order of the files', async () => {
    for (let number = 0; number < 30; number++) {
      const name = `k${String(number).padStart(2, '0')}`;
      if (number % 3 === 0) write(`${name}.yaml`, rawText(zero));
      else writeKeystore(directory.path, name, testSecret(number), 'p', LIGHT_SCRYPT);
      if (number % 3 === 1) write(`${name}.password`, 'wrong');
    }
    const result = await load();
    expect(result.loaded).toBe(10);
    const failed = result.failures.map((failure) => basename(failure.file, '.yaml'));
    expect(failed).toHaveLength(20);
    expect(failed).toEqual([...failed].sort());
  });

  it('no log line and no result carries a private key or a password', async () => {
    const password = 'correct horse battery staple';
    writeKeystore(directory.path, 'good', testSecret(1), password);
    writeKeystore(directory.path, 'bad', testSecret(2), password);
    write('bad.password', `${password}!`);
    write('raw.yaml', rawText(testSecret(3)));
    write('broken.yaml', `type: file-raw\nprivateKey: "${hex(testSecret(4))}`);
    const text = JSON.stringify([await load(), log.lines]);
    expect(text).not.toContain('horse');
    for (const number of [1, 2, 3, 4]) expect(text).not.toContain(hex(testSecret(number)).slice(0, 16));
  });
});
