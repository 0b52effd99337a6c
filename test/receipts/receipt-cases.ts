// The test vectors of specification/receipts.md#vectors: every rule has a case that breaks it. Nothing in them is
// random, so the file is what this makes: `node -e` with makeReceiptVectors() writes it again after a change of the
// format.

import type { ReceiptEntry } from '../../common/receipts/entry.ts';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import { tilePath } from '../../common/receipts/tiles.ts';
import { leafHash, TreeEdge } from '../../common/receipts/tree.ts';
import { edgeCases } from './edge-cases.ts';
import { encodeEntry } from './encode-entry.ts';
import { knownCases } from './known-cases.ts';
import { attestedLogs, DOCUMENT, type LogCase, logCases } from './log-cases.ts';
import { testEntry } from './logs.ts';
import { consistencyProof, inclusionProof, type NodeReader, nodesOfTiles } from './proofs.ts';
import { retentionCases } from './retention-cases.ts';

export interface ReceiptVectors {
  readonly note: string;
  readonly documents: Readonly<Record<string, string>>;
  readonly entries: readonly { name: string; hex: string; members: object | null }[];
  readonly trees: readonly { size: number; root: string }[];
  readonly inclusion: readonly {
    index: number;
    size: number;
    leaf: string;
    proof: readonly string[];
    holds: boolean;
  }[];
  readonly consistency: readonly { first: number; size: number; proof: readonly string[]; holds: boolean }[];
  readonly paths: Readonly<Record<string, string>>;
  readonly logs: readonly LogCase[];
}

const SIZES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 255, 256, 257, 300, 513];
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 7],
  [4, 8],
  [6, 8],
  [7, 8],
  [8, 17],
  [256, 257],
  [255, 300],
  [257, 513],
] as const;

export function leafOf(index: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(index));
  return leafHash(bytes);
}

/** A tree of so many of these leaves, and its nodes as tiles have them. */
export function treeOf(size: number, leaf: (index: number) => Buffer = leafOf): { edge: TreeEdge; node: NodeReader } {
  const full = new Map<string, readonly Buffer[]>();
  const edge = new TreeEdge(({ level, index, hashes }) => full.set(`${level}/${index}`, hashes));
  for (let index = 0; index < size; index++) edge.append(leaf(index));
  return { edge, node: nodesOfTiles((level, index) => full.get(`${level}/${index}`) ?? edge.partial(level)) };
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export function makeReceiptVectors(): ReceiptVectors {
  const attested = attestedLogs();
  return {
    note: 'keys are made from public seeds: test keys, worth nothing',
    documents: attested.documents,
    entries: entryCases(),
    trees: SIZES.map((size) => ({ size, root: hexOf(treeOf(size).edge.root()) })),
    ...proofCases(),
    paths: Object.fromEntries(
      [0, 5, 999, 1000, 1_234_067, 123_456_789].map((number) => [String(number), tilePath(0, number, 256)]),
    ),
    logs: [...logCases(), ...edgeCases(), ...attested.logs, ...retentionCases(DOCUMENT), ...knownCases(DOCUMENT)],
  };
}

function entryCases(): ReceiptVectors['entries'] {
  const vote = encodeEntry(testEntry(1, 0));
  const refused = encodeEntry(testEntry(1, 4));
  const changed = (bytes: Buffer, at: number, value: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = value;
    return copy;
  };
  const positionAt = 10 + 1 + 'ATTESTATION'.length + 1 + 48;
  const withNumber = (bytes: Buffer, at: number, value: bigint): Buffer => {
    const copy = Buffer.from(bytes);
    copy.writeBigUInt64BE(value, at);
    return copy;
  };
  const withText = (bytes: Buffer, at: number, text: string): Buffer => {
    const after = at + 1 + (bytes[at] ?? 0);
    return Buffer.concat([bytes.subarray(0, at), Buffer.from([text.length]), Buffer.from(text), bytes.subarray(after)]);
  };
  const rooted = encodeEntry(testEntry(1, 9));
  const reasonAt = 10 + 1 + 'ATTESTATION'.length;
  const everywhere = { slot: 1, epoch: 2, sourceEpoch: 3, targetEpoch: Number.MAX_SAFE_INTEGER };
  const all = encodeEntry({ ...testEntry(1, 0), position: everywhere });
  const lastPosition = all.length - 65 - 8;
  const cases: readonly (readonly [string, Buffer])[] = [
    ['a signed vote', vote],
    ['a signed reveal', encodeEntry(testEntry(1, 1))],
    ['a refusal without a root', refused],
    ['a refusal with a root', encodeEntry(testEntry(1, 9))],
    ['another version', changed(vote, 0, 2)],
    ['another outcome', changed(vote, 1, 3)],
    ['another outcome, with a reason and a root', changed(rooted, 1, 3)],
    ['signed, with a reason', changed(refused, 1, 1)],
    ['refused, without a reason', changed(vote, 1, 2)],
    ['a time after the year 9999', changed(vote, 2, 1)],
    ['an operation in lower case', changed(vote, 11, 0x61)],
    ['a fifth position', changed(vote, positionAt, 0x1d)],
    ['a position above 2^53 - 1', changed(vote, positionAt + 1, 1)],
    ['signed without a root', Buffer.concat([vote.subarray(0, -65), Buffer.from([0]), vote.subarray(-32)])],
    ['a root that is neither there nor not', changed(vote, vote.length - 65, 2)],
    ['one byte less', vote.subarray(0, -1)],
    ['one byte more', Buffer.concat([vote, Buffer.alloc(1)])],
    ['nothing', Buffer.alloc(0)],
    ['the last time of the year 9999', withNumber(vote, 2, 253_402_300_799_999n)],
    ['one millisecond later', withNumber(vote, 2, 253_402_300_800_000n)],
    ['all positions, one as large as can be', all],
    ['a position of 2^53', withNumber(all, lastPosition, 2n ** 53n)],
    ['no position but a fifth', changed(encodeEntry({ ...testEntry(1, 0), position: {} }), positionAt, 16)],
    ['a refusal whose root is neither there nor not', changed(rooted, rooted.length - 65, 2)],
    ['an operation of 64 characters', withText(vote, 10, 'A'.repeat(64))],
    ['an operation of 65 characters', withText(vote, 10, 'A'.repeat(65))],
    ['no operation', withText(vote, 10, '')],
    ['a reason of 64 characters', withText(encodeEntry(testEntry(1, 9)), reasonAt, 'a'.repeat(64))],
    ['a reason of 65 characters', withText(encodeEntry(testEntry(1, 9)), reasonAt, 'a'.repeat(65))],
  ];
  return cases.map(([name, bytes]) => {
    const members = decodeEntry(bytes);
    return { name, hex: hexOf(bytes), members: members === undefined ? null : shownEntry(members) };
  });
}

function shownEntry(entry: ReceiptEntry): object {
  const { signingRoot } = entry;
  return {
    time: entry.timeMs,
    operation: entry.operation,
    reason: entry.reason,
    public_key: hexOf(entry.publicKey),
    ...{ slot: entry.position.slot ?? null, epoch: entry.position.epoch ?? null },
    ...{ source_epoch: entry.position.sourceEpoch ?? null, target_epoch: entry.position.targetEpoch ?? null },
    signing_root: signingRoot === null ? null : hexOf(signingRoot),
    caller: hexOf(entry.caller),
  };
}

function proofCases(): Pick<ReceiptVectors, 'inclusion' | 'consistency'> {
  const inclusion = SIZES.filter((size) => size > 0).flatMap((size) => {
    const { node } = treeOf(size);
    return [...new Set([0, Math.floor(size / 2), size - 1])].flatMap((index) => {
      const proof = inclusionProof(index, size, node).map(hexOf);
      const right = { index, size, leaf: hexOf(leafOf(index)), proof, holds: true };
      const others = [
        { ...right, leaf: hexOf(leafOf(index + 1)) },
        { ...right, proof: [...proof, hexOf(leafOf(0))] },
        { ...right, index: size },
        ...(proof.length > 0 ? [{ ...right, proof: proof.slice(1) }] : []),
        ...(proof.length > 1 && proof[0] !== proof[1] ? [{ ...right, proof: proof.toReversed() }] : []),
      ];
      return [right, ...others.map((other) => ({ ...other, holds: false }))];
    });
  });
  const consistency = PAIRS.flatMap(([first, size]) => {
    const proof = consistencyProof(first, size, treeOf(size).node).map(hexOf);
    const right = { first, size, proof, holds: true };
    const others = [[], proof.slice(1), proof.slice(0, -1), [...proof, hexOf(leafOf(0))]];
    return [right, ...others.map((other) => ({ ...right, proof: other, holds: false }))];
  });
  return { inclusion, consistency: [...consistency, { first: 5, size: 5, proof: [], holds: true }] };
}
