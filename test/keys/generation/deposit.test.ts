// Deposit data: files of the staking deposit tool verify, ours verify by an independent computation on every network,
// and what would lose a deposit is refused.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { ByteVectorType, ContainerType, UintBigintType } from '@chainsafe/ssz';
import { describe, expect, it } from 'vitest';
import { depositProblem, makeDeposit } from '../../../signer/keys/generation/deposit.ts';
import {
  checksumAddress,
  depositAmountRefusal,
  isExecutionAddress,
  keccak256,
  withdrawalCredentialsOf,
} from '../../../signer/keys/generation/withdrawal.ts';
import type { StoredDeposit } from '../../../signer/keys/table/types.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { publicKeyOf, testSecret } from '../../support/keys.ts';
import { PUBLIC_NETWORK_NAMES } from '../../support/networks.ts';
import { vectorJson, vectorNames } from '../../support/vectors.ts';

const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

/** The SSZ types of the specification, by another implementation than ours. */
const Bytes32 = new ByteVectorType(32);
const message = {
  pubkey: new ByteVectorType(48),
  withdrawal_credentials: Bytes32,
  amount: new UintBigintType(8),
};
const DepositMessage = new ContainerType(message);
const DepositData = new ContainerType({ ...message, signature: new ByteVectorType(96) });
const SigningData = new ContainerType({ object_root: Bytes32, domain: Bytes32 });
const ForkData = new ContainerType({ current_version: new ByteVectorType(4), genesis_validators_root: Bytes32 });

function verifyIndependently(deposit: StoredDeposit): void {
  const bytes = (text: string) => Buffer.from(text, 'hex');
  const value = {
    pubkey: bytes(deposit.pubkey),
    withdrawal_credentials: bytes(deposit.withdrawal_credentials),
    amount: BigInt(deposit.amount),
  };
  const root = DepositMessage.hashTreeRoot(value);
  const signature = bytes(deposit.signature);
  expect(Buffer.from(root).toString('hex')).toBe(deposit.deposit_message_root);
  const dataRoot = DepositData.hashTreeRoot({ ...value, signature });
  expect(Buffer.from(dataRoot).toString('hex')).toBe(deposit.deposit_data_root);
  const fork = { current_version: bytes(deposit.fork_version), genesis_validators_root: Buffer.alloc(32) };
  const domain = Buffer.concat([Buffer.of(3, 0, 0, 0), ForkData.hashTreeRoot(fork).subarray(0, 28)]);
  const signed = SigningData.hashTreeRoot({ object_root: root, domain });
  expect(verify(signed, PublicKey.fromBytes(value.pubkey, true), Signature.fromBytes(signature, true))).toBe(true);
}

function credentials(target: Parameters<typeof withdrawalCredentialsOf>[0]): Buffer {
  const result = withdrawalCredentialsOf(target);
  if ('refused' in result) throw new Error(result.refused);
  return result.credentials;
}

const vectors = vectorNames('deposit').flatMap((name) => vectorJson<StoredDeposit[]>(`deposit/${name}`) ?? []);

describe.skipIf(vectors.length === 0)('files of the staking deposit tool', () => {
  it('there are four deposits', () => expect(vectors).toHaveLength(4));

  it.each(vectors)('verifies $deposit_data_root', (deposit) => {
    expect(depositProblem(deposit)).toBeUndefined();
  });

  it.each<[string, Partial<StoredDeposit>]>([
    ['another amount', { amount: 31_000_000_000 }],
    ['other credentials', { withdrawal_credentials: '01'.padEnd(64, '0') }],
    ['another fork version', { fork_version: '00000000' }],
    ['the signature of another deposit', { signature: vectors[1]?.signature ?? '' }],
    ['a data root of its own', { deposit_data_root: '00'.repeat(32) }],
    ['a key that is no point', { pubkey: '00'.repeat(48) }],
  ])('refuses one with %s', (_, change) => {
    const [deposit] = vectors;
    if (deposit === undefined) throw new Error('no vector');
    expect(depositProblem({ ...deposit, ...change })).toBeTypeOf('string');
  });
});

describe('deposit data of ours', () => {
  const secret = testSecret(7);
  const targets = [
    ['0x01 of an address', { withdrawalAddress: ADDRESS }, 32_000_000_000],
    ['0x01 of a lower-case address, one ETH', { withdrawalAddress: ADDRESS.toLowerCase() }, 1_000_000_000],
    ['0x02 of an address, 2048 ETH', { withdrawalAddress: ADDRESS, compounding: true }, 2_048_000_000_000],
    ['0x00 given whole', { withdrawalCredentials: `0x00${'ab'.repeat(31)}` }, 32_000_000_000],
  ] as const;
  const cases = PUBLIC_NETWORK_NAMES.flatMap((network) => targets.map((target) => [network, ...target] as const));

  it.each(cases)('on %s with %s verifies by another implementation', (name, _, target, amountGwei) => {
    const network = publicNetwork(name);
    const deposit = makeDeposit(secret, { credentials: credentials(target), amountGwei }, network);
    verifyIndependently(deposit);
    expect(deposit).toMatchObject({
      pubkey: publicKeyOf(secret).slice(2),
      amount: amountGwei,
      network_name: name,
      fork_version: Buffer.from(network.genesisForkVersion).toString('hex'),
    });
  });

  it('has the members of the tool, in its order, hex without 0x', () => {
    const terms = { credentials: credentials({ withdrawalAddress: ADDRESS }), amountGwei: 32_000_000_000 };
    const deposit = makeDeposit(secret, terms, publicNetwork('hoodi'));
    expect(Object.keys(deposit)).toEqual([
      'pubkey',
      'withdrawal_credentials',
      'amount',
      'signature',
      'deposit_message_root',
      'deposit_data_root',
      'fork_version',
      'network_name',
      'deposit_cli_version',
    ]);
    expect(deposit.withdrawal_credentials).toBe(`01${'00'.repeat(11)}${ADDRESS.slice(2).toLowerCase()}`);
    expect(JSON.stringify(deposit)).not.toContain('0x');
  });

  it('has the same signature each time: what is stored can be compared', () => {
    const terms = { credentials: credentials({ withdrawalAddress: ADDRESS }), amountGwei: 32_000_000_000 };
    const [first, second] = [1, 2].map(() => makeDeposit(secret, terms, publicNetwork('mainnet')));
    expect(first).toEqual(second);
  });
});

describe('withdrawal credentials', () => {
  const CREDENTIALS_1 = `0x01${'00'.repeat(11)}${'11'.repeat(20)}`;
  it.each([
    ['neither', {}],
    ['both', { withdrawalAddress: ADDRESS, withdrawalCredentials: CREDENTIALS_1 }],
    ['an address with a wrong checksum', { withdrawalAddress: ADDRESS.replace('Ae', 'AE') }],
    ['an address in upper case', { withdrawalAddress: `0x${ADDRESS.slice(2).toUpperCase()}` }],
    ['an address without 0x', { withdrawalAddress: ADDRESS.slice(2) }],
    ['an address of 19 bytes', { withdrawalAddress: ADDRESS.slice(0, -2) }],
    ['the zero address', { withdrawalAddress: `0x${'00'.repeat(20)}` }],
    ['credentials of the zero address', { withdrawalCredentials: `0x01${'00'.repeat(31)}` }],
    ['credentials of 31 bytes', { withdrawalCredentials: `0x01${'00'.repeat(30)}` }],
    ['credentials of a kind that is not', { withdrawalCredentials: `0x03${'00'.repeat(11)}${'11'.repeat(20)}` }],
    ['an address that is not right-aligned', { withdrawalCredentials: `0x01${'11'.repeat(31)}` }],
    ['compounding with credentials that do not', { withdrawalCredentials: CREDENTIALS_1, compounding: true }],
  ])('refuses %s', (_, target) => {
    expect(withdrawalCredentialsOf(target)).toHaveProperty('refused');
  });

  it.each([
    [{ withdrawalAddress: ADDRESS }, '01'],
    [{ withdrawalAddress: ADDRESS, compounding: true }, '02'],
    [{ withdrawalCredentials: CREDENTIALS_1 }, '01'],
    [{ withdrawalCredentials: CREDENTIALS_1.replace('0x01', '0x02'), compounding: true }, '02'],
  ])('of %o begin with %s', (target, kind) => {
    expect(credentials(target).toString('hex').slice(0, 2)).toBe(kind);
  });

  it.each([
    ['01', 999_999_999, false],
    ['01', 1_000_000_000, true],
    ['01', 32_000_000_000, true],
    ['01', 32_000_000_001, false],
    ['00', 32_000_000_001, false],
    ['02', 2_048_000_000_000, true],
    ['02', 2_048_000_000_001, false],
    ['02', 32_000_000_000.5, false],
    ['02', Number.NaN, false],
  ])('0x%s may get %d gwei: %s', (kind, amount, allowed) => {
    expect(depositAmountRefusal(amount, Buffer.from(kind, 'hex')) === undefined).toBe(allowed);
  });
});

describe('addresses', () => {
  it.each([
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ])('%s is spelled as EIP-55 does', (address) => {
    expect(checksumAddress(address.toLowerCase())).toBe(address);
    expect(isExecutionAddress(address)).toBe(true);
  });

  it('the hash under the checksum is Keccak-256 and not SHA3-256', () => {
    expect(keccak256(Buffer.alloc(0)).toString('hex')).toBe(
      'c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470',
    );
  });
});
