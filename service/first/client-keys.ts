// Opens what was found of a client's keys, each with its password, before anything of it is written: a wrong password,
// a damaged keystore and a key under another's name end a migration here. By the way it learns the public keys from the
// keys themselves, as the signer will.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { plural } from '../../common/command-line/printable.ts';
import { showProgress } from '../../common/command-line/progress.ts';
import { canAsk, readLine } from '../../common/command-line/question.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { publicKeyOf } from '../../signer/bls/portable.ts';
import { DECRYPTION_REFUSALS } from '../../signer/keys/files/folder-scan.ts';
import { readKeystoreAlone, readPassword } from '../../signer/keys/files/keystore-file.ts';
import type { KeystorePool } from '../../signer/keys/keystores/pool.ts';
import { inParallel } from '../../signer/parallel.ts';
import { openPool } from '../key-files.ts';
import type { FoundKey, FoundKeys } from './client-folders.ts';
import { FirstStepFailure } from './failure.ts';
import type { WrittenFile } from './signer-folder.ts';

export interface OpenedKey {
  readonly publicKey: string;
  /** Below the folder of the signer, as it reads them. */
  readonly files: readonly WrittenFile[];
}

const KEYSTORES_AT_ONCE = 128;
/** The first few of a thousand say what is wrong with all. */
const MAX_NAMED = 3;

/**
 * @param passwordFile the password of keystores that have no password file next to them
 * @throws FirstStepFailure; nothing is written
 */
export async function openKeys(
  found: FoundKeys,
  passwordFile: string | undefined,
  terminal: Terminal,
): Promise<{ readonly keys: readonly OpenedKey[]; readonly left: readonly string[] }> {
  const left = [...found.left];
  const wrong: string[] = [];
  const closed: ClosedKey[] = [];
  for (const { file, secretKey, password } of found.keys) {
    const read = secretKey === undefined ? await readKeystoreAlone(file) : { secretKey };
    if (!('refused' in read)) closed.push({ file, password, ...read });
    else if (read.foreign === undefined) wrong.push(read.refused);
    else left.push(`${file}: no keystore (${read.foreign})`);
  }
  const without = closed.filter((key) => 'keystore' in key && key.password === undefined).length;
  const one = without === 0 ? undefined : await onePassword(without, passwordFile, terminal);
  const opened = new Map<string, OpenedKey>();
  const pool = openPool(KEYSTORES_AT_ONCE);
  try {
    using progress = showProgress(terminal, { doing: 'opening', unit: 'keystores', total: closed.length });
    let done = 0;
    await inParallel(closed, pool.concurrency + 1, async (key) => {
      const result = await openKey(key, one, pool);
      if (typeof result === 'string') wrong.push(`${key.file}: ${result}`);
      else opened.set(result.publicKey, result);
      progress.reach(++done);
    });
  } finally {
    await pool.close();
  }
  if (wrong.length === 0) return { keys: [...opened.values()], left };
  const more = wrong.length > MAX_NAMED ? [`and ${wrong.length - MAX_NAMED} more`] : [];
  throw new FirstStepFailure(`${plural(wrong.length, 'key')} of ${found.keys.length} cannot be used`, [
    ...wrong.sort().slice(0, MAX_NAMED),
    ...more,
    'nothing was written: correct the password (--passwords), or move away what is no key of the client',
  ]);
}

type ClosedKey = Pick<FoundKey, 'file'> & { readonly password: FoundKey['password'] | undefined } & (
    | { readonly secretKey: Uint8Array }
    | Exclude<Awaited<ReturnType<typeof readKeystoreAlone>>, { readonly refused: string }>
  );

/** The one question, when keystores lie without their passwords. */
async function onePassword(count: number, file: string | undefined, terminal: Terminal): Promise<Uint8Array> {
  if (file !== undefined) {
    const read = await readPassword(file);
    if ('content' in read) return read.content;
    throw new FirstStepFailure(`--passwords ${file}: ${read.refused}`);
  }
  const without = `${plural(count, 'keystore')} without a password beside`;
  const typed = canAsk(terminal) && (await readLine(terminal, `${without}. The one password (not shown): `, true));
  if (typed) return Buffer.from(typed);
  throw new FirstStepFailure(
    `${without}, and none was given`,
    ['name a file that has it: --passwords FILE'],
    EXIT.notConfirmed,
  );
}

/** @returns why it cannot be used, otherwise */
async function openKey(key: ClosedKey, one: Uint8Array | undefined, pool: KeystorePool): Promise<OpenedKey | string> {
  if ('secretKey' in key) {
    const text = `type: file-raw\nkeyType: BLS\nprivateKey: "${encodeHex(key.secretKey)}"\n`;
    const publicKey = namedBy(key.secretKey);
    return publicKey === undefined ? NO_KEY : { publicKey, files: [{ path: `keys/${publicKey}.yaml`, text }] };
  }
  const { keystore, content, password: place } = key;
  const read = place === undefined ? { content: one ?? Buffer.alloc(0) } : await passwordAt(place);
  if ('refused' in read) return `its password: ${read.refused}`;
  const password = Buffer.concat([read.content, Buffer.from('\n')]);
  const decrypted = await pool.decrypt(keystore, Uint8Array.from(read.content), 'load');
  if ('refused' in decrypted) return DECRYPTION_REFUSALS[decrypted.refused];
  const publicKey = namedBy(decrypted.secretKey);
  if (publicKey === undefined) return NO_KEY;
  if (publicKey !== (keystore.publicKey ?? publicKey)) return 'its key is not the one that it names';
  return {
    publicKey,
    files: [
      { path: `keys/${publicKey}.json`, text: content },
      { path: `passwords/${publicKey}.txt`, text: password },
    ],
  };
}

const NO_KEY = 'its private key is zero or not below the group order';

/** Wipes the key. */
function namedBy(secretKey: Uint8Array): string | undefined {
  try {
    return encodeHex(publicKeyOf(secretKey));
  } catch {
    return undefined;
  } finally {
    secretKey.fill(0);
  }
}

async function passwordAt(place: NonNullable<FoundKey['password']>) {
  return 'text' in place ? { content: Buffer.from(place.text) } : readPassword(place.file);
}
