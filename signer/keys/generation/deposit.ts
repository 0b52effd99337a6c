// Deposit data as the staking deposit tool writes it (consensus-specs, phase0, Deposits), its signature verified.

import { strict as assert } from 'node:assert';
import { createHash } from 'node:crypto';
import { PublicKey, SecretKey, Signature, verify } from '@chainsafe/blst';
import { decodeHex } from '../../../common/formats/hex.ts';
import type { StoredDeposit } from '../table/types.ts';
import { depositAmountRefusal } from './withdrawal.ts';

const DEPOSIT_CLI_VERSION = '2.8.0';

export interface DepositNetwork {
  readonly configName: string;
  readonly genesisForkVersion: Uint8Array;
}

export interface DepositTerms {
  readonly credentials: Uint8Array;
  readonly amountGwei: number;
}

/** @param secretKey 32 bytes, big endian; the caller wipes it */
export function makeDeposit(secretKey: Uint8Array, terms: DepositTerms, network: DepositNetwork): StoredDeposit {
  const { credentials, amountGwei } = terms;
  assert.equal(credentials.length, 32);
  assert.equal(depositAmountRefusal(amountGwei, credentials), undefined);
  // blst wipes a SecretKey when it is collected.
  const signer = SecretKey.fromBytes(secretKey);
  const publicKey = signer.toPublicKey().toBytes();
  const messageRoot = depositMessageRoot(publicKey, credentials, amountGwei);
  const signature = signer.sign(signingRoot(messageRoot, network.genesisForkVersion)).toBytes();
  const deposit: StoredDeposit = {
    pubkey: hex(publicKey),
    withdrawal_credentials: hex(credentials),
    amount: amountGwei,
    signature: hex(signature),
    deposit_message_root: hex(messageRoot),
    deposit_data_root: hex(depositDataRoot(publicKey, credentials, amountGwei, signature)),
    fork_version: hex(network.genesisForkVersion),
    network_name: network.configName,
    deposit_cli_version: DEPOSIT_CLI_VERSION,
  };
  assert.equal(depositProblem(deposit), undefined, 'deposit data that does not verify');
  return deposit;
}

export function depositProblem(
  deposit: Omit<StoredDeposit, 'network_name' | 'deposit_cli_version'>,
): string | undefined {
  const publicKey = decodeHex(deposit.pubkey, 48);
  const credentials = decodeHex(deposit.withdrawal_credentials, 32);
  const signature = decodeHex(deposit.signature, 96);
  const forkVersion = decodeHex(deposit.fork_version, 4);
  if (publicKey === undefined || credentials === undefined || signature === undefined || forkVersion === undefined) {
    return 'a member is not hex of its length';
  }
  if (!Number.isSafeInteger(deposit.amount) || deposit.amount < 0) return 'amount is not a whole number';
  const messageRoot = depositMessageRoot(publicKey, credentials, deposit.amount);
  if (hex(messageRoot) !== deposit.deposit_message_root) return 'deposit_message_root is not the root of the message';
  const dataRoot = depositDataRoot(publicKey, credentials, deposit.amount, signature);
  if (hex(dataRoot) !== deposit.deposit_data_root) return 'deposit_data_root is not the root of the data';
  const isSigned = isSignedBy(publicKey, signingRoot(messageRoot, forkVersion), signature);
  return isSigned ? undefined : 'the signature is not of this key over this message';
}

/** Deposits are valid across forks: the genesis fork version, and a genesis validators root of zeros. */
const DOMAIN_DEPOSIT = Buffer.of(3, 0, 0, 0);

function signingRoot(messageRoot: Uint8Array, genesisForkVersion: Uint8Array): Buffer {
  const forkDataRoot = merkleRoot([padded(genesisForkVersion), ZERO_LEAF]);
  return merkleRoot([messageRoot, Buffer.concat([DOMAIN_DEPOSIT, forkDataRoot.subarray(0, 28)])]);
}

function depositMessageRoot(publicKey: Uint8Array, credentials: Uint8Array, amountGwei: number): Buffer {
  return merkleRoot([bytesRoot(publicKey), credentials, uint64Leaf(amountGwei), ZERO_LEAF]);
}

function depositDataRoot(
  publicKey: Uint8Array,
  credentials: Uint8Array,
  amountGwei: number,
  signature: Uint8Array,
): Buffer {
  return merkleRoot([bytesRoot(publicKey), credentials, uint64Leaf(amountGwei), bytesRoot(signature)]);
}

const ZERO_LEAF = Buffer.alloc(32);

function merkleRoot(leaves: readonly Uint8Array[]): Buffer {
  const [left, right] = [leaves.slice(0, leaves.length / 2), leaves.slice(leaves.length / 2)];
  const nodeOf = (half: readonly Uint8Array[]) =>
    half.length === 1 && half[0] !== undefined ? half[0] : merkleRoot(half);
  return createHash('sha256').update(nodeOf(left)).update(nodeOf(right)).digest();
}

/** Bytes48 and Bytes96 have two and three leaves, filled up to a power of two. */
function bytesRoot(bytes: Uint8Array): Buffer {
  const leafCount = bytes.length <= 64 ? 2 : 4;
  return merkleRoot(Array.from({ length: leafCount }, (_, i) => padded(bytes.subarray(i * 32, (i + 1) * 32))));
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, ZERO_LEAF], 32);
}

function uint64Leaf(value: number): Buffer {
  const leaf = Buffer.alloc(32);
  leaf.writeBigUInt64LE(BigInt(value));
  return leaf;
}

function isSignedBy(publicKey: Uint8Array, root: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verify(root, PublicKey.fromBytes(publicKey, true), Signature.fromBytes(signature, true));
  } catch {
    return false; // not points of the groups
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
