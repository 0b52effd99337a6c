// Passwords of keystores as EIP-2335 processes them: normalized, without control codes, and wiped.

import { describe, expect, it } from 'vitest';
import { passwordForms } from '../../../signer/keys/keystores/cipher.ts';
import { encryptKeystore, testSecret } from '../../support/keys.ts';
import { parsed, pool } from './keystore-set-up.ts';

function processed(text: string | Uint8Array): string | undefined {
  const [bytes] = passwordForms(typeof text === 'string' ? Buffer.from(text, 'utf8') : text);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex');
}

describe('passwords', () => {
  it('are normalized by NFKD: the example of EIP-2335', () => {
    expect(processed('𝔱𝔢𝔰𝔱𝔭𝔞𝔰𝔰𝔴𝔬𝔯𝔡🔑')).toBe('7465737470617373776f7264f09f9491');
  });

  it('lose every control code of C0, C1 and Delete, and nothing else', () => {
    for (let code = 0; code < 0x100; code++) {
      const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f);
      const character = String.fromCharCode(code);
      const kept = isControl ? '' : Buffer.from(character.normalize('NFKD'), 'utf8').toString('hex');
      expect([code, processed(`a${character}b`)]).toEqual([code, `61${kept}62`]);
    }
  });

  it('keep spaces at both ends', () => {
    expect(processed(' a ')).toBe('206120');
  });

  /** Of Go's golang.org/x/text/unicode/norm 0.14: the first code point of each of its segments (NFKD). */
  it.each([
    ['p\u00e4ssw\u00f6rd', '70617373776f7264'],
    ['\u00c5ngstr\u00f6m', '416e677374726f6d'],
    ['Vi\u1ec7t Nam', '56696574204e616d'],
    ['a\u0301\u0327b', '6162'],
    ['\u0301start', 'cc817374617274'],
    ['e\u0345\u0301', '65'],
    ['\u1e9b\u0323', '73'],
    ['\u0f73x', 'e0bdb178'],
    ['\ufb01anc\u00e9', '6669616e6365'],
    ['\u00bd\u2126', '31e2818432cea9'],
    ['\uff46\uff55\uff4c\uff4c', '66756c6c'],
    ['\ud55c\uad6d\uc5b4', 'e18492e18480e1848b'],
    ['\u30ac\u30ae\u30b0', 'e382abe382ade382af'],
    ['\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd', 'd7a9d79cd795d79d'],
    ['\u0928\u092e\u0938\u094d\u0924\u0947', 'e0a4a8e0a4aee0a4b8e0a4a4e0a587'],
    ['\u0e44\u0e17\u0e22\u0e14\u0e35', 'e0b984e0b897e0b8a2e0b894e0b8b5'],
    ['\u2603\ufe0f', 'e29883efb88f'],
    ['\u00f1and\u00fa\u0007x', '6e616e647578'],
    ['x\u0085y', '78c28579'],
  ])('of old tools are tried when the right form does not open the keystore: %j', async (password, old) => {
    const forms = passwordForms(Buffer.from(password, 'utf8')).map((form) => Buffer.from(form).toString('hex'));
    expect(forms).toContain(old);
    expect(forms[0]).toBe(Buffer.from(password.normalize('NFKD').replace(/\p{Cc}/gu, '')).toString('hex'));
    // What that text opens, in a form that every tool leaves as it is.
    const written = Buffer.from(old, 'hex').toString('utf8');
    if (written !== written.normalize('NFKD') || /\p{Cc}/u.test(written)) return;
    const keystore = parsed(encryptKeystore(testSecret(1), written));
    expect(await pool.decrypt(keystore, Buffer.from(password, 'utf8'))).toMatchObject({ secretKey: testSecret(1) });
    expect(await pool.decrypt(keystore, Buffer.from(`${password}x`, 'utf8'))).toEqual({ refused: 'wrong_password' });
  });

  it('with a byte order mark before them are tried without it, and with it', () => {
    const forms = passwordForms(Buffer.from('\ufeffpw', 'utf8')).map((form) => Buffer.from(form).toString('utf8'));
    expect(forms).toEqual(['pw', '\ufeffpw']);
  });

  it.each(['pw', 'p\u00e4ss'])('with a blank at their end are tried with it, then without: %s', async (password) => {
    const given = () => Buffer.from(`${password}  `, 'utf8');
    const forms = passwordForms(given()).map((form) => Buffer.from(form).toString('utf8'));
    expect([forms[0], forms.at(-1)]).toEqual([`${password}  `, password].map((text) => text.normalize('NFKD')));
    for (const right of [`${password}  `, password]) {
      const keystore = parsed(encryptKeystore(testSecret(1), right));
      expect(await pool.decrypt(keystore, given())).toMatchObject({ secretKey: testSecret(1) });
    }
    expect(passwordForms(Buffer.from('  ', 'utf8'))).toHaveLength(1);
  });

  it('of ASCII have one form', () => {
    expect(passwordForms(Buffer.from('a password 1!', 'utf8'))).toHaveLength(1);
  });

  it('that are not UTF-8 are refused', async () => {
    expect(processed(Buffer.from('61ff', 'hex'))).toBeUndefined();
    const keystore = parsed(encryptKeystore(testSecret(1), 'a'));
    expect(await pool.decrypt(keystore, Buffer.from('61ff', 'hex'))).toEqual({ refused: 'password_not_utf8' });
  });

  it('are wiped where the caller has them', async () => {
    const password = Buffer.from('a password', 'utf8');
    await pool.decrypt(parsed(encryptKeystore(testSecret(1), 'a password')), password);
    expect(password.every((byte) => byte === 0)).toBe(true);
  });
});
