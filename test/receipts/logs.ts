// Logs of signers that tests make: boots with keys from public seeds, entries, and heads in a chain. Worth nothing.

import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { callerDigest, type ReceiptEntry } from '../../common/receipts/entry.ts';
import { type HeadStatement, headText, type LogHead, readHead, signedHead } from '../../common/receipts/head.ts';
import { type BootIdentity, bootOf, encodeIdentity } from '../../common/receipts/identity.ts';
import { encodeBundle } from '../../common/receipts/read-entry.ts';
import { headPath, tilePath } from '../../common/receipts/tiles.ts';
import { leafHash, TILE_WIDTH, TreeEdge } from '../../common/receipts/tree.ts';
import type { ShownBoot } from '../../common/receipts/verify.ts';
import { encodeEntry } from './encode-entry.ts';

/** RFC 8410 §7: the seed of an Ed25519 key follows. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const GENESIS = `0x${'d8'.repeat(32)}`;
export const START_MS = Date.parse('2026-11-25T12:00:00Z');

export interface TestBoot {
  readonly identity: BootIdentity;
  readonly boot: string;
  readonly privateKey: KeyObject;
}

export interface MadeLog {
  readonly test: TestBoot;
  readonly identity: string;
  readonly heads: readonly string[];
  readonly entries: readonly Buffer[];
}

export interface LogPlan {
  /** Sizes at which heads are made after the first, which has none. */
  readonly sizes: readonly number[];
  /** Seconds since the begin of all tests. */
  readonly startSeconds: number;
  readonly before?: HeadStatement['before'];
  readonly closed?: boolean;
  /** Between heads. */
  readonly intervalSeconds?: number;
  readonly retentionDays?: number;
  readonly change?: (head: LogHead) => LogHead;
  readonly entry?: (index: number, bytes: Buffer) => Buffer;
}

/** A test key: its seed is the SHA-256-sized repetition of one byte. */
export function testBoot(seed: number, document: Buffer | null = null): TestBoot {
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, Buffer.alloc(32, seed)]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = Buffer.from(privateKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const kind = document === null ? 'unattested' : 'attested';
  return {
    identity: { kind, publicKey, genesisValidatorsRoot: GENESIS, document },
    boot: bootOf(publicKey),
    privateKey,
  };
}

export function testEntry(seed: number, index: number): ReceiptEntry {
  const isRefused = index % 5 === 4;
  const target = 1000 + index;
  return {
    timeMs: START_MS + index,
    operation: index % 3 === 0 ? 'ATTESTATION' : 'RANDAO_REVEAL',
    reason: isRefused ? 'double_vote' : null,
    publicKey: Buffer.alloc(48, seed),
    position: index % 3 === 0 ? { slot: target * 32, sourceEpoch: target - 1, targetEpoch: target } : { epoch: target },
    signingRoot: isRefused && index % 2 === 0 ? null : Buffer.alloc(32, index),
    caller: callerDigest('client-1', ['validator-client']),
  };
}

export function signHead(head: LogHead, { identity, privateKey }: TestBoot): string {
  return signedHead(head, identity, sign(null, Buffer.from(headText(head)), privateKey));
}

export function makeLog(test: TestBoot, seed: number, plan: LogPlan): MadeLog {
  const { sizes, startSeconds, before = { heads: [], gap: null }, closed = true, change = (head) => head } = plan;
  const edge = new TreeEdge();
  const entries: Buffer[] = [];
  const heads: string[] = [];
  let previous: string | null = null;
  for (const [sequence, size] of [0, ...sizes].entries()) {
    while (edge.size < size) {
      const bytes = encodeEntry(testEntry(seed, edge.size));
      const entry: Buffer = plan.entry?.(edge.size, bytes) ?? bytes;
      entries.push(entry);
      edge.append(leafHash(entry));
    }
    const head = change({
      kind: test.identity.kind,
      boot: test.boot,
      size,
      root: edge.root(),
      statement: {
        sequence,
        time: START_MS + Math.round((startSeconds + sequence * (plan.intervalSeconds ?? 60)) * 1000),
        previous,
        before: sequence === 0 ? before : null,
        lost: 0,
        closed: closed && sequence === sizes.length && sequence > 0,
        slashing: { store: 'sqlite:5f1c', revision: String(size) },
        latch: null,
        auth_revision: null,
        retention_days: plan.retentionDays ?? null,
      },
    });
    const note = signHead(head, test);
    heads.push(note);
    previous = digestOf(note);
  }
  return { test, identity: encodeIdentity(test.identity), heads, entries };
}

export function digestOf(note: string): string {
  const head = readHead(note);
  if (head === undefined) throw new Error('a test made no head');
  return head.digest;
}

/** What the first head of a later boot says of these. */
export function naming(...notes: string[]): NonNullable<HeadStatement['before']> {
  return { heads: notes.map(digestOf).sort(), gap: null };
}

export function shown({ identity, heads, entries }: MadeLog): ShownBoot {
  return { identity, heads, entries };
}

/** A head that is signed again after a change. */
export function resigned(note: string, test: TestBoot, change: (head: LogHead) => LogHead): string {
  const head = readHead(note);
  if (head === undefined) throw new Error('a test made no head');
  return signHead(change(head), test);
}

/** The log as a folder of its boot in this folder, without tiles of hashes. */
export function writeLog(folder: string, { test, identity, heads, entries }: MadeLog): void {
  const write = (path: string, content: string | Buffer): void => {
    const target = join(folder, test.boot, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  };
  write('identity', `${identity}\n`);
  for (const [sequence, note] of heads.entries()) write(headPath(sequence), note);
  write('checkpoint', heads.at(-1) ?? '');
  for (let first = 0; first < entries.length; first += TILE_WIDTH) {
    const bundle = entries.slice(first, first + TILE_WIDTH);
    write(tilePath('entries', first / TILE_WIDTH, bundle.length), encodeBundle(bundle));
  }
}
