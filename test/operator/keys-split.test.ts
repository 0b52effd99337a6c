// `operator keys split`: what a person runs on a machine of their own. Its shares are read back as a signer reads them.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SecretKey } from '@chainsafe/blst';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shareSchema } from '../../signer/api/distributed.ts';
import { decryptKeystore } from '../../signer/keys/keystores/cipher.ts';
import { parseKeystoreJson } from '../../signer/keys/keystores/keystore.ts';
import { loadAddon } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';
import { encryptKeystore } from '../support/keys.ts';
import { type Outcome, runWithRoot } from './run-operator.ts';

const SECRET = SecretKey.fromKeygen(Buffer.alloc(32, 7));
const PUBLIC_KEY = SECRET.toPublicKey().toHex();
const PASSWORD = 'ein Paßwort';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-split-'));
  writeFileSync(join(folder, 'key.json'), JSON.stringify(encryptKeystore(SECRET.toBytes(), PASSWORD)));
  writeFileSync(join(folder, 'key.password'), `${PASSWORD}\r\n`);
});
afterEach(() => rmSync(folder, { recursive: true }));

function split(flags: Readonly<Record<string, string>> = {}, keystore = 'key.json'): Promise<Outcome> {
  const all = { threshold: '3', participants: '4', 'password-file': join(folder, 'key.password'), ...flags };
  const directory = join(folder, flags['directory'] ?? 'shares');
  const given = Object.entries({ ...all, directory }).flatMap(([name, value]) => [`--${name}`, value]);
  return runWithRoot(['keys', 'split', join(folder, keystore), ...given], { rootFingerprint: '00' });
}

function shareFiles(participant: number): string {
  return join(folder, 'shares', `participant-${participant}`, PUBLIC_KEY);
}

function openShare(participant: number): { readonly secretKey: Uint8Array; readonly share: unknown } {
  const text = readFileSync(`${shareFiles(participant)}.json`, 'utf8');
  const keystore = parseKeystoreJson(text);
  if ('refused' in keystore) throw new Error(keystore.reason);
  const [password = ''] = readFileSync(`${shareFiles(participant)}.txt`, 'utf8').split('\n');
  const opened = decryptKeystore(keystore, Buffer.from(password));
  if (!('secretKey' in opened)) throw new Error(opened.refused);
  return { secretKey: opened.secretKey, share: JSON.parse(text).distributed };
}

describe.skipIf(!addonForTests())('operator keys split', () => {
  it('writes a share for each participant, of which any three sign as the whole key does', async () => {
    const { code, stdout, stderr } = await split();
    expect([code, stdout.split('\n')[0]]).toEqual([0, PUBLIC_KEY]);
    expect(stderr).toContain('any 3 of the 4 sign; 1 may be down');
    expect(stderr).toContain('no more than 1 lie or lose their records');
    const root = Buffer.alloc(32, 1);
    const partials = [4, 2, 1].map((id) => SecretKey.fromBytes(openShare(id).secretKey).sign(root).toBytes());
    const signature = Buffer.alloc(96);
    loadAddon()?.combinePartials(Uint8Array.of(4, 2, 1), Buffer.concat(partials), signature);
    expect(signature).toEqual(Buffer.from(SECRET.sign(root).toBytes()));
  });

  it('says in each keystore which share it is, and for whom the key signs', async () => {
    await split();
    for (const id of [1, 2, 3, 4]) {
      const { secretKey, share } = openShare(id);
      const parsed = shareSchema.parse(share);
      expect(parsed).toMatchObject({ participant_id: id, signing_threshold: 3, participants: 4, set: 1 });
      expect(parsed.composite_public_key).toBe(PUBLIC_KEY);
      const { pubkey } = JSON.parse(readFileSync(`${shareFiles(id)}.json`, 'utf8'));
      expect(`0x${pubkey}`).toBe(SecretKey.fromBytes(secretKey).toPublicKey().toHex());
    }
  });

  it('writes for its owner alone, each share with a password of its own', async () => {
    await split();
    const files = [1, 2, 3, 4].flatMap((id) => [`${shareFiles(id)}.json`, `${shareFiles(id)}.txt`]);
    expect(files.map((file) => statSync(file).mode & 0o777)).toEqual(files.map(() => 0o600));
    expect(new Set([1, 2, 3, 4].map((id) => readFileSync(`${shareFiles(id)}.txt`, 'utf8'))).size).toBe(4);
  });

  it('says when none of the participants may lose its records', async () => {
    expect((await split({ threshold: '2', participants: '3' })).stderr).toContain(
      'none of them may lose its slashing records',
    );
  });

  it('writes over nothing, and leaves nothing of an attempt that failed', async () => {
    await split();
    const before = openShare(4).secretKey;
    rmSync(join(folder, 'shares', 'participant-1'), { recursive: true });
    const { code, stderr } = await split();
    expect(code).toBe(1);
    expect(stderr).toContain('participant-2');
    expect(stderr).toContain('cannot be written (EEXIST)');
    expect(readdirSync(join(folder, 'shares', 'participant-1'))).toEqual([]);
    expect(openShare(4).secretKey).toEqual(before);
  });

  it.each([
    [{ threshold: '2' }, '2 of 4 could sign two slashable messages'],
    [{ threshold: '1', participants: '1' }, 'a threshold below 2 distributes nothing'],
    [{ threshold: '5' }, 'a threshold of 5 needs as many participants, and there are 4'],
    [{ participants: '33' }, '--participants is a whole number from 1 to 32'],
    [{ threshold: 'three' }, '--threshold is a whole number from 1 to 32'],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await split(flags);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(readdirSync(folder)).not.toContain('shares');
  });

  it('refuses a wrong password, a file that is none, and a share, which it does not split again', async () => {
    await split();
    writeFileSync(join(folder, 'wrong'), 'wrong\n');
    const other = { directory: 'again' };
    expect((await split({ ...other, 'password-file': join(folder, 'wrong') })).stderr).toContain('does not open');
    expect((await split(other, 'key.password')).stderr).toContain('no EIP-2335 keystore: not JSON');
    expect((await split(other, 'missing.json')).stderr).toContain('cannot be read (ENOENT)');
    const share = join('shares', 'participant-1', `${PUBLIC_KEY}.json`);
    expect((await split(other, share)).stderr).toContain('is a share of a distributed key already');
    expect(readdirSync(folder)).not.toContain('again');
  });

  it('refuses the secret of another public key than the keystore names', async () => {
    const other = encryptKeystore(Buffer.alloc(32, 1), PASSWORD, undefined, PUBLIC_KEY.slice(2));
    writeFileSync(join(folder, 'key.json'), JSON.stringify(other));
    expect((await split()).stderr).toContain('holds the secret of another public key than it names');
    expect(readdirSync(folder)).not.toContain('shares');
  });

  it('says no secret', async () => {
    const { stdout, stderr } = await split();
    const said = stdout + stderr;
    const secrets = [1, 2, 3, 4].map((id) => Buffer.from(openShare(id).secretKey).toString('hex'));
    const passwords = [1, 2, 3, 4].map((id) => readFileSync(`${shareFiles(id)}.txt`, 'utf8').trim());
    for (const secret of [...secrets, ...passwords, PASSWORD]) expect(said).not.toContain(secret);
  });
});
