// `strongroom operator keys split`: a validator key that exists becomes shares, one for each participant, on the
// operator's own machine. The whole key and its polynomial are wiped; they go nowhere. It trusts the machine it runs
// on, and refuses a keystore that is a share already.

import { randomFillSync } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { note } from '../../common/command-line/terminal.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { type KeyShare, MAX_PARTICIPANTS, thresholdProblem } from '../../signer/api/distributed.ts';
import { decryptKeystore } from '../../signer/keys/keystores/cipher.ts';
import { encryptKeystore, newPassword } from '../../signer/keys/keystores/encrypt.ts';
import { parseKeystoreJson } from '../../signer/keys/keystores/keystore.ts';
import { type Addon, loadAddon } from '../../signer/native/load.ts';
import { localCommand } from '../command.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { pathFailure, readCount, readLocalFile } from '../key-batches.ts';

/** A key that exists is split once; resharing, which makes the next set, is a later step. */
const FIRST_SET = 1;
const KEY_BYTES = 32;
const PUBLIC_KEY_BYTES = 48;
/** As in signer/native/shares.c. */
const COEFFICIENT_BYTES = 48;

export const keysSplit = localCommand(
  {
    summary: 'Split a key into shares for several signers (experimental)',
    flags: {
      threshold: { placeholder: 'COUNT', meaning: 'How many participants sign together', required: true },
      participants: {
        placeholder: 'COUNT',
        meaning: `How many there are, at most ${MAX_PARTICIPANTS}`,
        required: true,
      },
      'password-file': { placeholder: 'FILE', meaning: 'The password of the keystore', required: true },
      directory: { placeholder: 'DIRECTORY', meaning: 'Where the shares go, participant-1 and so on', required: true },
    },
    argument: { name: 'KEYSTORE', meaning: 'An EIP-2335 file of the whole key' },
    notes: [
      'Each participant is a signer with a slashing store of its own. Import the records of the key into every one of ' +
        'them before it loads its share, and destroy the whole key: who has it needs no participant.',
    ],
    examples: [
      'keys split key.json --password-file key.password --threshold 3 --participants 4 --directory shares',
      'keys split key.json --password-file key.password --threshold 5 --participants 7 --directory shares',
    ],
  },

  async ({ values, argument, terminal }) => {
    const participants = readCount('participants', values.participants, MAX_PARTICIPANTS) ?? 0;
    const threshold = readCount('threshold', values.threshold, MAX_PARTICIPANTS) ?? 0;
    const problem = thresholdProblem(threshold, participants);
    if (problem !== undefined) throw new UsageFailure(problem, 'for example --threshold 3 --participants 4');
    const addon = loadAddon();
    if (addon === undefined) throw localFailure('splitting a key needs the native core', 'make native');
    addon.disableCoreDumps();
    const { secretKey, publicKey } = await wholeKey(argument, values['password-file']);
    const shares = sharesOf(addon, secretKey, { threshold, participants });
    try {
      const [{ share: { compositePublicKey } = { compositePublicKey: '' } } = {}] = shares;
      if (publicKey !== undefined && publicKey !== compositePublicKey)
        throw localFailure(`${argument} holds the secret of another public key than it names: nothing was written`);
      const folders = await writeShares(values.directory, shares);
      terminal.stdout.write(`${compositePublicKey}\n${folders.map((folder) => `${folder}\n`).join('')}`);
      const lost = 2 * threshold - participants - 1;
      note(terminal, `any ${threshold} of the ${participants} sign; ${participants - threshold} may be down`);
      note(
        terminal,
        lost === 0
          ? NONE_MAY_BE_LOST
          : `nothing slashable is signed while no more than ${lost} lie or lose their records`,
      );
      note(terminal, 'next: the records of the key into each of them, its share there, and the whole key destroyed');
    } finally {
      for (const { secret } of shares) secret.fill(0);
    }
  },
);

const NONE_MAY_BE_LOST =
  'none of them may lose its slashing records: each needs its full protection (3 of 4 forgives one)';

interface SecretShare {
  readonly share: KeyShare;
  readonly secret: Uint8Array;
}

interface WholeKey {
  /** 32 bytes, to be wiped. */
  readonly secretKey: Uint8Array;
  /** That the keystore names, if it does. */
  readonly publicKey: string | undefined;
}

async function wholeKey(path: string, passwordFile: string): Promise<WholeKey> {
  const keystore = parseKeystoreJson(await readLocalFile(path));
  if ('refused' in keystore) throw localFailure(`${path} is no EIP-2335 keystore: ${keystore.reason}`);
  if (keystore.share !== undefined) {
    throw localFailure(`${path} is a share of a distributed key already`, 'name the keystore of the whole key');
  }
  const password = await readFirstLine(passwordFile);
  const opened = decryptKeystore(keystore, password);
  password.fill(0);
  if ('secretKey' in opened) return { secretKey: opened.secretKey, publicKey: keystore.publicKey };
  throw localFailure(
    opened.refused === 'wrong_password' ? `the password does not open ${path}` : 'the password is not UTF-8',
    'the first line of --password-file is the password',
  );
}

async function readFirstLine(path: string): Promise<Uint8Array> {
  const content = await readFile(path).catch((error: unknown) => {
    throw pathFailure(path, 'read', error);
  });
  const end = content.indexOf('\n');
  const line = Uint8Array.from(end === -1 ? content : content.subarray(0, end));
  content.fill(0);
  return line.at(-1) === 0x0d ? line.subarray(0, -1) : line;
}

/** @param secretKey taken over and wiped */
function sharesOf(
  addon: Addon,
  secretKey: Uint8Array,
  { threshold, participants }: { readonly threshold: number; readonly participants: number },
): readonly SecretShare[] {
  const secretBytes = (length: number) => new Uint8Array(addon.allocateSecret(length, 'best_effort'));
  const random = secretBytes((threshold - 1) * COEFFICIENT_BYTES);
  const secrets = secretBytes(participants * KEY_BYTES);
  const points = new Uint8Array(threshold * PUBLIC_KEY_BYTES);
  try {
    addon.splitKey(secretKey, randomFillSync(random), secrets, points);
  } finally {
    secretKey.fill(0);
    random.fill(0);
  }
  const commitments = Array.from({ length: threshold }, (_, at) =>
    encodeHex(points.subarray(at * PUBLIC_KEY_BYTES, (at + 1) * PUBLIC_KEY_BYTES)),
  );
  const [compositePublicKey = ''] = commitments;
  return Array.from({ length: participants }, (_, index) => {
    const publicKey = new Uint8Array(PUBLIC_KEY_BYTES);
    addon.sharePublicKey(points, index + 1, publicKey);
    return {
      secret: secrets.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES),
      share: {
        ...{ compositePublicKey, publicKey: encodeHex(publicKey), participantId: index + 1 },
        ...{ threshold, participants, set: FIRST_SET, commitments },
      },
    };
  });
}

/** All or none: shares of two attempts would not sign together. */
async function writeShares(directory: string, shares: readonly SecretShare[]): Promise<readonly string[]> {
  const written: string[] = [];
  const write = async (path: string, text: string): Promise<void> => {
    await writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true }).catch((error: unknown) => {
      if (errorCode(error) !== 'EEXIST') written.push(path); // a part of it may be there
      throw pathFailure(path, 'written', error);
    });
    written.push(path);
  };
  try {
    for (const { share, secret } of shares) {
      const folder = join(directory, `participant-${share.participantId}`);
      await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
        throw pathFailure(folder, 'written', error);
      });
      const password = newPassword();
      const path = join(folder, share.compositePublicKey);
      await write(`${path}.json`, encryptKeystore(secret, password, { ...described(share), share }));
      await write(`${path}.txt`, `${password}\n`);
    }
  } catch (error) {
    for (const path of written) await rm(path, { force: true });
    throw error;
  }
  return written.filter((path) => path.endsWith('.json'));
}

function described({ publicKey, participantId, threshold, participants }: KeyShare) {
  return {
    publicKey,
    description: `share ${participantId} of a distributed key: ${threshold} of ${participants} sign`,
  };
}
