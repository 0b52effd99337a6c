// The root token between the signer and the holder of an age identity: any recipient alone opens it, nobody else does,
// and Debian's `age` opens it too.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Encrypter } from 'age-encryption';
import { describe, expect, it } from 'vitest';
import { encryptToRecipients } from '../../ceremony/age.ts';
import { decryptWithIdentities, generateAgeIdentity, isAgeIdentity } from '../../ceremony/age-identity.ts';
import { isAgeRecipient } from '../../ceremony/age-recipient.ts';
import { encryptRootToken } from '../../ceremony/root-token.ts';
import { openRootToken } from '../../ceremony/root-token-opening.ts';
import { lacking } from '../support/needs.ts';

const TOKEN = `sr_mgmt_${randomBytes(32).toString('base64url')}`;
const alice = await generateAgeIdentity();
const bob = await generateAgeIdentity();
const mallory = await generateAgeIdentity();

describe('the root token', () => {
  it('is opened by each recipient alone', async () => {
    const armored = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient, bob.recipient]);
    for (const { identity } of [alice, bob]) {
      expect(await openRootToken(armored, [identity])).toEqual({ ok: true, token: TOKEN });
    }
  });

  it('is opened when one of several identities is a recipient’s', async () => {
    const armored = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient]);
    expect(await openRootToken(armored, [mallory.identity, alice.identity])).toEqual({ ok: true, token: TOKEN });
  });

  it('is not opened by anybody else', async () => {
    const armored = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient]);
    expect(await openRootToken(armored, [mallory.identity])).toEqual({ ok: false, refusal: 'not_for_identity' });
  });

  it('stays the caller’s to wipe', async () => {
    const token = Buffer.from(TOKEN);
    await encryptRootToken(token, [alice.recipient]);
    expect(token.toString()).toBe(TOKEN);
  });

  it.each(['', 'sr_client_', `${TOKEN}\n`, 'x'.repeat(51)])('is not %j', async (text) => {
    await expect(encryptRootToken(Buffer.from(text), [alice.recipient])).rejects.toThrow('management token');
    const planted = await encryptToRecipients(Buffer.from(text), [alice.recipient]);
    expect(await openRootToken(planted, [alice.identity])).toEqual({ ok: false, refusal: 'not_a_root_token' });
  });

  it('is not encrypted to nobody, nor to a recipient that is none', async () => {
    await expect(encryptRootToken(Buffer.from(TOKEN), [])).rejects.toThrow('needs a recipient');
    await expect(encryptRootToken(Buffer.from(TOKEN), [alice.recipient, 'age1'])).rejects.toThrow('no schema');
  });

  it('is damaged when one character of it changes', async () => {
    const armored = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient]);
    const lines = armored.trimEnd().split('\n');
    const at = lines.length - 2;
    lines[at] = (lines[at] ?? '').replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
    expect(await openRootToken(lines.join('\n'), [alice.identity])).toEqual({ ok: false, refusal: 'damaged' });
  });

  it.each(['', 'text', '-----BEGIN AGE ENCRYPTED FILE-----', '{}'])('is not in %j', async (text) => {
    expect(await openRootToken(text, [alice.identity])).toEqual({ ok: false, refusal: 'not_armored' });
  });
});

describe('age', () => {
  it('generates identities that it accepts', () => {
    expect(isAgeRecipient(alice.recipient)).toBe(true);
    expect(isAgeIdentity(alice.identity)).toBe(true);
    expect(isAgeIdentity(alice.recipient)).toBe(false);
    expect(isAgeRecipient(alice.identity)).toBe(false);
  });

  it('takes the recipients that the encryption takes, whichever character is another', () => {
    const { recipient } = alice;
    for (let at = 0; at < recipient.length; at++) {
      const mistyped = recipient.slice(0, at) + (recipient[at] === 'q' ? 'p' : 'q') + recipient.slice(at + 1);
      expect({ mistyped, ours: isAgeRecipient(mistyped), theirs: isTakenByAge(mistyped) }).toEqual({
        mistyped,
        ours: false,
        theirs: false,
      });
    }
    expect(isAgeRecipient(recipient)).toBe(isTakenByAge(recipient));
  });

  it('notices a mistyped identity', () => {
    expect(isAgeIdentity(alice.identity.replace(/.$/, (last) => (last === 'Q' ? 'P' : 'Q')))).toBe(false);
  });
});

function isTakenByAge(recipient: string): boolean {
  try {
    new Encrypter().addRecipient(recipient);
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(lacking('age'))('the program age', () => {
  it('opens the root token, and opens to us what it encrypted', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strongroom-age-'));
    try {
      const identityFile = join(directory, 'identity');
      writeFileSync(identityFile, `${bob.identity}\n`, { mode: 0o600 });
      const armored = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient, bob.recipient]);
      const opened = execFileSync('age', ['-d', '-i', identityFile], { input: armored, encoding: 'utf8' });
      expect(opened).toBe(TOKEN);
      const theirs = execFileSync('age', ['-a', '-r', bob.recipient], { input: TOKEN, encoding: 'utf8' });
      expect(await decryptWithIdentities(theirs, [bob.identity])).toEqual({ ok: true, plaintext: Buffer.from(TOKEN) });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
