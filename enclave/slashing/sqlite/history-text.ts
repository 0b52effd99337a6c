// A part of a key's history as JSON text: what travels between the threads, and what lies staged until it is merged.

import type { PublicKeyHex, ValidatorHistory } from '../types.ts';

export type StagedHistory = readonly [publicKey: PublicKeyHex, history: string];

export function writeHistory({ publicKey, blocks, attestations, leftOut }: ValidatorHistory): string {
  return JSON.stringify([
    publicKey,
    blocks.map(({ slot, signingRoot }) => [slot, hexOrNull(signingRoot)]),
    attestations.map(({ sourceEpoch, targetEpoch, signingRoot }) => [sourceEpoch, targetEpoch, hexOrNull(signingRoot)]),
    ...(leftOut === undefined ? [] : [leftOut]),
  ]);
}

export function readHistory(text: string): ValidatorHistory {
  const [publicKey, blocks, attestations, leftOut] = JSON.parse(text) as [
    string,
    [number, string | null][],
    [number, number, string | null][],
    ValidatorHistory['leftOut'],
  ];
  return {
    publicKey,
    blocks: blocks.map(([slot, root]) => ({ slot, signingRoot: bytesOrNull(root) })),
    attestations: attestations.map(([sourceEpoch, targetEpoch, root]) => ({
      sourceEpoch,
      targetEpoch,
      signingRoot: bytesOrNull(root),
    })),
    ...(leftOut === undefined ? {} : { leftOut }),
  };
}

function hexOrNull(root: Uint8Array | null): string | null {
  return root === null ? null : Buffer.from(root).toString('hex');
}

function bytesOrNull(root: string | null): Uint8Array | null {
  return root === null ? null : Buffer.from(root, 'hex');
}
