// Passwords of keystores as EIP-2335 processes them: normalized, without control codes, and wiped.

import { describe, expect, it } from 'vitest';
import { processPassword } from '../../../signer/keys/keystores/cipher.ts';
import { encryptKeystore, testSecret } from '../../support/keys.ts';
import { parsed, pool } from './keystore-set-up.ts';

function processed(text: string | Uint8Array): string | undefined {
  const bytes = processPassword(typeof text === 'string' ? Buffer.from(text, 'utf8') : text);
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
