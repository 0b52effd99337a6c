// Shares of TEST keys, as `operator keys split` makes them: the same shares for the same number, threshold and
// participants, and the keystores that participants load.

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeHex } from '../../common/formats/hex.ts';
import { type KeyShare, writtenShare } from '../../signer/api/distributed.ts';
import { type Addon, loadAddon } from '../../signer/native/load.ts';
import { addonForTests } from './addon.ts';
import { encryptKeystore, LIGHT_PBKDF2, testSecret } from './keys.ts';

const SECRET_BYTES = 32;
const COMMITMENT_BYTES = 48;
const COEFFICIENT_BYTES = 48;
export const SHARE_PASSWORD = 'TEST password of a share';

export interface TestShare {
  readonly share: KeyShare;
  readonly secretKey: Uint8Array;
}

interface Split {
  readonly threshold?: number;
  readonly participants?: number;
  /** Another one is another polynomial. */
  readonly set?: number;
}

export function addonOfTests(): Addon {
  const addon = addonForTests() ? loadAddon() : undefined;
  if (addon === undefined) throw new Error('shares need the native addon');
  return addon;
}

/** Of testSecret(number), in the order of the participants from 1 on. */
export function testShares(number: number, { threshold = 3, participants = 4, set = 1 }: Split = {}): TestShare[] {
  const addon = addonOfTests();
  const secrets = new Uint8Array(participants * SECRET_BYTES);
  const points = new Uint8Array(threshold * COMMITMENT_BYTES);
  const coefficients = Array.from({ length: threshold - 1 }, (_, degree) =>
    createHash('sha384').update(`strongroom test polynomial ${number} ${set} ${degree}`).digest(),
  );
  if (coefficients.some(({ length }) => length !== COEFFICIENT_BYTES)) throw new Error('a coefficient has 48 bytes');
  addon.splitKey(testSecret(number), Buffer.concat(coefficients), secrets, points);
  const commitments = Array.from({ length: threshold }, (_, at) =>
    encodeHex(points.subarray(at * COMMITMENT_BYTES, (at + 1) * COMMITMENT_BYTES)),
  );
  return Array.from({ length: participants }, (_, index) => {
    const publicKey = new Uint8Array(COMMITMENT_BYTES);
    addon.sharePublicKey(points, index + 1, publicKey);
    return {
      secretKey: secrets.slice(index * SECRET_BYTES, (index + 1) * SECRET_BYTES),
      share: {
        compositePublicKey: commitments[0] ?? '',
        publicKey: encodeHex(publicKey),
        participantId: index + 1,
        threshold,
        participants,
        set,
        commitments,
      },
    };
  });
}

export function testShare(number: number, participantId: number, split: Split = {}): TestShare {
  const share = testShares(number, split)[participantId - 1];
  if (share === undefined) throw new Error(`there is no participant ${participantId}`);
  return share;
}

/** An EIP-2335 keystore of a share, as JSON has it. */
export function shareKeystore({ share, secretKey }: TestShare) {
  const keystore = encryptKeystore(secretKey, SHARE_PASSWORD, LIGHT_PBKDF2, share.publicKey.slice(2));
  return { ...keystore, distributed: writtenShare(share) };
}

/** Writes NAME.json, NAME.password and NAME.yaml, which names both. @returns the composite public key */
export function writeShare(directory: string, name: string, given: TestShare): string {
  writeFileSync(join(directory, `${name}.json`), JSON.stringify(shareKeystore(given)));
  writeFileSync(join(directory, `${name}.password`), `${SHARE_PASSWORD}\n`);
  writeFileSync(
    join(directory, `${name}.yaml`),
    `type: file-keystore\nkeyType: BLS\nkeystoreFile: ${name}.json\nkeystorePasswordFile: ${name}.password\n`,
  );
  return given.share.compositePublicKey;
}

/** Of as many participants as the threshold. @returns 96 bytes */
export function combined(partials: readonly { readonly participantId: number; readonly signature: string }[]) {
  const signature = new Uint8Array(96);
  const bytes = Buffer.concat(partials.map((partial) => Buffer.from(partial.signature.slice(2), 'hex')));
  addonOfTests().combinePartials(Uint8Array.from(partials.map(({ participantId }) => participantId)), bytes, signature);
  return signature;
}
