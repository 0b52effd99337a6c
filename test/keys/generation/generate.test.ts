// Generated keys: what the backup holds gives the same key again, by the standards that every wallet follows.

import { mnemonicToSeedSync } from '@scure/bip39';
import { describe, expect, it } from 'vitest';
import { encryptToRecipients } from '../../../ceremony/age.ts';
import { decryptWithIdentities, generateAgeIdentity } from '../../../ceremony/age-identity.ts';
import {
  deriveSecretKey,
  generateKey,
  mnemonicOfEntropy,
  SIGNING_KEY_PATH,
} from '../../../signer/keys/generation/generate.ts';
import { publicKeyOf } from '../../support/keys.ts';

const backupFor = (recipients: readonly string[]) => (words: Uint8Array) => encryptToRecipients(words, recipients);

describe('with a backup', () => {
  it('the backup opens for each recipient, and its 24 words derive the key', async () => {
    const people = [await generateAgeIdentity(), await generateAgeIdentity()];
    const key = await generateKey({ encryptBackup: backupFor(people.map(({ recipient }) => recipient)) });
    for (const { identity } of people) {
      const opened = await decryptWithIdentities(key.backup ?? '', [identity]);
      if (!opened.ok) throw new Error(opened.refusal);
      const mnemonic = opened.plaintext.toString('utf8');
      expect(mnemonic.split(' ')).toHaveLength(24);
      const secretKey = deriveSecretKey(mnemonicToSeedSync(mnemonic), SIGNING_KEY_PATH);
      expect(Buffer.from(secretKey)).toEqual(Buffer.from(key.secretKey));
    }
    expect(key.publicKey).toBe(publicKeyOf(key.secretKey));
    expect(key.backup).toMatch(/^-----BEGIN AGE ENCRYPTED FILE-----\n/);
  });

  it('somebody else cannot open it', async () => {
    const { recipient } = await generateAgeIdentity();
    const stranger = await generateAgeIdentity();
    const { backup } = await generateKey({ encryptBackup: backupFor([recipient]) });
    expect(await decryptWithIdentities(backup ?? '', [stranger.identity])).toMatchObject({ ok: false });
  });

  it('the words are those of the entropy it was given', async () => {
    const { recipient, identity } = await generateAgeIdentity();
    const given = Buffer.alloc(32, 9);
    const fillRandom = (buffer: Buffer) => void given.copy(buffer);
    const { backup } = await generateKey({ encryptBackup: backupFor([recipient]), fillRandom });
    const opened = await decryptWithIdentities(backup ?? '', [identity]);
    expect(opened.ok && opened.plaintext.toString('utf8')).toBe(mnemonicOfEntropy(given));
  });
});

describe('without a backup', () => {
  it('a key is the EIP-2333 master key of 32 random bytes, and there is no backup', async () => {
    const fillRandom = (buffer: Buffer) => void buffer.fill(3);
    const key = await generateKey({ encryptBackup: undefined, fillRandom });
    expect(key.backup).toBeUndefined();
    expect(Buffer.from(key.secretKey)).toEqual(Buffer.from(deriveSecretKey(Buffer.alloc(32, 3), 'm')));
    expect(key.publicKey).toBe(publicKeyOf(key.secretKey));
  });

  it('two keys are two keys', async () => {
    const [one, two] = [
      await generateKey({ encryptBackup: undefined }),
      await generateKey({ encryptBackup: undefined }),
    ];
    expect(one.publicKey).not.toBe(two.publicKey);
  });
});

it('the entropy is wiped, also when encryption fails', async () => {
  let held: Buffer | undefined;
  const fillRandom = (buffer: Buffer) => {
    held = buffer.fill(1);
  };
  await generateKey({ encryptBackup: undefined, fillRandom });
  expect(held).toEqual(Buffer.alloc(32));
  held = undefined;
  await expect(generateKey({ encryptBackup: backupFor(['age1nobody']), fillRandom })).rejects.toThrow();
  expect(held).toEqual(Buffer.alloc(32));
});
