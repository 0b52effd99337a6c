// Where a validator's stake may go: a deposit to wrong credentials is lost.

import { keccak_256 } from '@noble/hashes/sha3.js';
import { decodeHex } from '../../../common/formats/hex.ts';

interface WithdrawalTarget {
  /** 32 bytes of hex: 0x00 (BLS), 0x01 (execution address) or 0x02 (compounding). */
  readonly withdrawalCredentials?: string | undefined;
  /** 20 bytes of hex, all lower case or with an EIP-55 checksum. */
  readonly withdrawalAddress?: string | undefined;
  readonly compounding?: boolean | undefined;
}

type WithdrawalCredentials = { readonly credentials: Buffer } | { readonly refused: string };

export const DEFAULT_DEPOSIT_GWEI = 32_000_000_000;
const MIN_DEPOSIT_GWEI = 1_000_000_000;
/** MIN_ACTIVATION_BALANCE: more than this is swept from a validator that does not compound. */
const MAX_DEPOSIT_GWEI = 32_000_000_000;
const MAX_COMPOUNDING_DEPOSIT_GWEI = 2_048_000_000_000;

const COMPOUNDING = 0x02;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

export function withdrawalCredentialsOf(target: WithdrawalTarget): WithdrawalCredentials {
  const { withdrawalCredentials, withdrawalAddress, compounding = false } = target;
  if ((withdrawalCredentials === undefined) === (withdrawalAddress === undefined)) {
    return { refused: 'give either withdrawal_credentials or withdrawal_address' };
  }
  if (withdrawalAddress !== undefined) return credentialsOfAddress(withdrawalAddress, compounding);
  const credentials = decodeHex(withdrawalCredentials ?? '', 32);
  if (credentials === undefined) return { refused: 'withdrawal_credentials is not 32 bytes of hex' };
  const [kind] = credentials;
  if (kind !== 0x00 && kind !== 0x01 && kind !== COMPOUNDING) {
    return { refused: 'withdrawal_credentials begins with none of 0x00, 0x01 and 0x02' };
  }
  if (kind !== 0x00 && credentials.subarray(1, 12).some((byte) => byte !== 0)) {
    return { refused: 'withdrawal_credentials with an address has eleven zero bytes before it' };
  }
  if (kind !== 0x00 && credentials.subarray(12).every((byte) => byte === 0)) return { refused: ZERO_ADDRESS };
  if (compounding && kind !== COMPOUNDING) return { refused: 'compounding needs withdrawal_credentials of type 0x02' };
  return { credentials: Buffer.from(credentials) };
}

export function depositAmountRefusal(amountGwei: number, credentials: Uint8Array): string | undefined {
  const maximum = credentials[0] === COMPOUNDING ? MAX_COMPOUNDING_DEPOSIT_GWEI : MAX_DEPOSIT_GWEI;
  const isInRange = Number.isSafeInteger(amountGwei) && amountGwei >= MIN_DEPOSIT_GWEI && amountGwei <= maximum;
  return isInRange ? undefined : `amount_gwei is not a whole number from ${MIN_DEPOSIT_GWEI} to ${maximum}`;
}

export function isExecutionAddress(text: string): boolean {
  return ADDRESS.test(text) && (text === text.toLowerCase() || text === checksumAddress(text));
}

export function checksumAddress(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256(Buffer.from(digits, 'ascii')).toString('hex');
  const spelled = [...digits].map((digit, i) =>
    Number.parseInt(hash[i] ?? '0', 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${spelled.join('')}`;
}

const ZERO_ADDRESS = 'withdrawals to the zero address are lost';

function credentialsOfAddress(address: string, compounding: boolean): WithdrawalCredentials {
  if (!isExecutionAddress(address)) {
    return { refused: 'withdrawal_address is not 0x and 40 hex digits, all lower case or with an EIP-55 checksum' };
  }
  const bytes = Buffer.from(address.slice(2), 'hex');
  if (bytes.every((byte) => byte === 0)) return { refused: ZERO_ADDRESS };
  return { credentials: Buffer.concat([Buffer.of(compounding ? COMPOUNDING : 0x01), Buffer.alloc(11), bytes]) };
}

/** For the checksum of an address only (EIP-55): nothing secret passes. */
export function keccak256(message: Uint8Array): Buffer {
  return Buffer.from(keccak_256(message));
}
