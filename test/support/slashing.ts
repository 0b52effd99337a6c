// Makers of slashing messages and readers of the official EIP-3076 test files, shared by the tests of all backends.

import { canonicalPublicKey, decodeHex } from '../../common/formats/hex.ts';
import type { Log } from '../../common/observe/log.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import type {
  BlockProposal,
  SlashableMessage,
  SlashingBackend,
  SlashingVerdict,
  ValidatorHistory,
  Vote,
} from '../../signer/slashing/types.ts';

export const MAIN_ROOT = `0x${'11'.repeat(32)}`;
export const OTHER_ROOT = `0x${'22'.repeat(32)}`;

export function publicKeyOf(index: number): string {
  return `0x${index.toString(16).padStart(96, '0')}`;
}

/** A signing root that is the same for the same name. */
export function rootOf(name: string | number): Uint8Array {
  const root = Buffer.alloc(32);
  root.write(`root ${name}`, 'utf8');
  return root;
}

export function block(key: number, slot: number, root: string | number): BlockProposal {
  return { kind: 'block', publicKey: publicKeyOf(key), slot, signingRoot: rootOf(root) };
}

export function vote(key: number, sourceEpoch: number, targetEpoch: number, root: string | number): Vote {
  return { kind: 'attestation', publicKey: publicKeyOf(key), sourceEpoch, targetEpoch, signingRoot: rootOf(root) };
}

export async function checkOne(backend: SlashingBackend, message: SlashableMessage): Promise<SlashingVerdict> {
  const [verdict] = await backend.checkAndRecord([message], [NO_MARKS]);
  if (verdict === undefined) throw new Error('the backend gave no verdict');
  return verdict;
}

/** `safe`, `repeat`, or the reason. */
export function verdictName(verdict: SlashingVerdict): string {
  if (verdict.kind === 'safe') return verdict.repeat ? 'repeat' : 'safe';
  return verdict.reason;
}

/** `safe`, `repeat` or `refused`. */
export function kindOf(verdict: string): string {
  return verdict === 'safe' || verdict === 'repeat' ? verdict : 'refused';
}

export const quietLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

export async function collect(histories: AsyncIterable<ValidatorHistory>): Promise<ValidatorHistory[]> {
  return Array.fromAsync(histories);
}

export async function* stream<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

export function history(
  key: number,
  blocks: readonly (readonly [slot: number, root: string | null])[],
  attestations: readonly (readonly [source: number, target: number, root: string | null])[],
): ValidatorHistory {
  return {
    publicKey: publicKeyOf(key),
    blocks: blocks.map(([slot, root]) => ({ slot, signingRoot: root === null ? null : rootOf(root) })),
    attestations: attestations.map(([sourceEpoch, targetEpoch, root]) => ({
      sourceEpoch,
      targetEpoch,
      signingRoot: root === null ? null : rootOf(root),
    })),
  };
}

/** Test files of the official EIP-3076 interchange tests (their own notes beside them). */
export interface InterchangeTest {
  readonly name: string;
  readonly genesis_validators_root: string;
  readonly steps: readonly {
    readonly should_succeed: boolean;
    readonly interchange: { readonly data: readonly InterchangeValidator[] };
    readonly blocks: readonly (InterchangeBlock & InterchangeCheck)[];
    readonly attestations: readonly (InterchangeAttestation & InterchangeCheck)[];
  }[];
}

interface InterchangeCheck {
  readonly pubkey: string;
  readonly should_succeed: boolean;
  readonly should_succeed_complete: boolean;
}

interface InterchangeBlock {
  readonly slot: string;
  readonly signing_root?: string;
}

interface InterchangeAttestation {
  readonly source_epoch: string;
  readonly target_epoch: string;
  readonly signing_root?: string;
}

interface InterchangeValidator {
  readonly pubkey: string;
  readonly signed_blocks: readonly InterchangeBlock[];
  readonly signed_attestations: readonly InterchangeAttestation[];
}

export function historiesOf(data: readonly InterchangeValidator[]): ValidatorHistory[] {
  return data.map((validator) => ({
    publicKey: keyOf(validator.pubkey),
    blocks: validator.signed_blocks.map((entry) => ({ slot: Number(entry.slot), signingRoot: givenRoot(entry) })),
    attestations: validator.signed_attestations.map((entry) => ({
      sourceEpoch: Number(entry.source_epoch),
      targetEpoch: Number(entry.target_epoch),
      signingRoot: givenRoot(entry),
    })),
  }));
}

export function blockOf(entry: InterchangeBlock & { readonly pubkey: string }): BlockProposal {
  return { kind: 'block', publicKey: keyOf(entry.pubkey), slot: Number(entry.slot), signingRoot: requiredRoot(entry) };
}

export function voteOf(entry: InterchangeAttestation & { readonly pubkey: string }): Vote {
  return {
    kind: 'attestation',
    publicKey: keyOf(entry.pubkey),
    sourceEpoch: Number(entry.source_epoch),
    targetEpoch: Number(entry.target_epoch),
    signingRoot: requiredRoot(entry),
  };
}

function keyOf(text: string): string {
  const key = canonicalPublicKey(text);
  if (key === undefined) throw new Error(`not a public key: ${text}`);
  return key;
}

function givenRoot({ signing_root: text }: { readonly signing_root?: string }): Uint8Array | null {
  return text === undefined ? null : requiredRoot({ signing_root: text });
}

function requiredRoot({ signing_root: text = '' }: { readonly signing_root?: string }): Uint8Array {
  const root = decodeHex(text, 32);
  if (root === undefined) throw new Error(`not a root: ${text}`);
  return root;
}

/** The keys whose tenure has ended, of these or of all; ascending. */
export async function retiredKeys(
  backend: Pick<SlashingBackend, 'tenures'>,
  publicKeys?: readonly string[],
): Promise<readonly string[]> {
  const tenures = [...(await backend.tenures(publicKeys))];
  return tenures
    .filter(([, tenure]) => tenure % 2 === 1)
    .map(([publicKey]) => publicKey)
    .sort();
}

/** Begin the next tenure of each key whose tenure has ended. @returns the keys that are begun, ascending */
export async function reinstate(
  backend: Pick<SlashingBackend, 'tenures' | 'beginTenures'>,
  publicKeys: readonly string[],
): Promise<readonly string[]> {
  const begun = await backend.beginTenures(await backend.tenures(publicKeys));
  return [...begun.keys()].sort();
}

/** The message as a copy of this tenure asks. */
export function inTenure<Message extends SlashableMessage>(tenure: number, message: Message): Message {
  return { ...message, tenure };
}
