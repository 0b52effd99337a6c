// A plugin of age for tests (C2SP age-plugin, identity-v1), in place of a security key: its identity names nothing, and
// the X25519 secret lies where only the plugin looks, in the file that HELDKEY_FILE names (as age-keygen writes it).
// It opens X25519 stanzas (C2SP age v1), which is what a ceremony's recipients are.

import { createDecipheriv, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** With a body of eight zero values: `AGE-PLUGIN-HELDKEY-` in bech32. */
export const HELD_KEY_IDENTITY = 'AGE-PLUGIN-HELDKEY-1QQQQQQQQ5ZQZA8';

const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
/** RFC 8410: what stands before the 32 bytes in the DER of a key. */
const PRIVATE_DER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_DER = Buffer.from('302a300506032b656e032100', 'hex');

interface Stanza {
  readonly share: Buffer;
  readonly body: Buffer;
}

if (import.meta.main) {
  if (process.argv[2] !== '--age-plugin=identity-v1') throw new Error('run by age');
  const lines = await untilDone();
  const fileKey = stanzasIn(lines)
    .map(unwrap)
    .find((key) => key !== undefined);
  if (fileKey !== undefined) process.stdout.write(`-> file-key 0\n${base64(fileKey)}\n`);
  process.stdout.write('-> done\n\n');
}

async function untilDone(): Promise<string[]> {
  let text = '';
  for await (const part of process.stdin.setEncoding('utf8')) {
    text += String(part);
    if (text.endsWith('-> done\n\n')) break;
  }
  return text.split('\n');
}

function stanzasIn(lines: readonly string[]): Stanza[] {
  return lines.flatMap((line, at) => {
    const [, share] = /^-> recipient-stanza 0 X25519 (\S+)$/.exec(line) ?? [];
    if (share === undefined) return [];
    return [{ share: Buffer.from(share, 'base64'), body: Buffer.from(lines[at + 1] ?? '', 'base64') }];
  });
}

/** C2SP age v1, the X25519 recipient type; undefined: for another recipient. */
function unwrap({ share, body }: Stanza): Buffer | undefined {
  const key = { format: 'der', type: 'pkcs8' } as const;
  const privateKey = createPrivateKey({ ...key, key: Buffer.concat([PRIVATE_DER, secret()]) });
  const ephemeral = createPublicKey({ key: Buffer.concat([PUBLIC_DER, share]), format: 'der', type: 'spki' });
  const ours = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  const shared = diffieHellman({ privateKey, publicKey: ephemeral });
  const wrapKey = hkdfSync('sha256', shared, Buffer.concat([share, ours]), 'age-encryption.org/v1/X25519', 32);
  const cipher = createDecipheriv('chacha20-poly1305', Buffer.from(wrapKey), Buffer.alloc(12), { authTagLength: 16 });
  cipher.setAuthTag(body.subarray(-16));
  try {
    return Buffer.concat([cipher.update(body.subarray(0, -16)), cipher.final()]);
  } catch {
    return undefined;
  }
}

/** The 32 bytes of AGE-SECRET-KEY-1…, whose checksum age-keygen has made. */
function secret(): Buffer {
  const text = readFileSync(process.env['HELDKEY_FILE'] ?? '', 'utf8');
  const data = /^AGE-SECRET-KEY-1([A-Z0-9]{58})$/m.exec(text)?.[1]?.toLowerCase().slice(0, -6) ?? '';
  const bits = [...data].map((character) => BECH32.indexOf(character).toString(2).padStart(5, '0')).join('');
  return Buffer.from(Array.from({ length: 32 }, (_, at) => Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2)));
}

/** Without padding, as age has it. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
