// The file of an import on its way to a complete store: in parts of bounded size, each as text, which travels between
// threads and lies in a table until it is merged. Faults of the file are thrown here, before the merge.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { historyReducer } from '../interchange/reduce.ts';
import type { HistoryPart, PublicKeyHex, ValidatorHistory } from '../types.ts';
import { STEP_ENTRIES } from './store.ts';

export type StagedText = readonly [publicKey: PublicKeyHex, part: string];

/** Everything of the stream goes to `add`, about a step at a time; resolves with what it named. */
export async function stageHistories(
  histories: AsyncIterable<ValidatorHistory>,
  add: (parts: readonly StagedText[]) => Promise<unknown>,
) {
  const staged = { parts: 0, blocks: 0, attestations: 0 };
  let chunk: StagedText[] = [];
  let entries = 0;
  const send = async (): Promise<void> => {
    if (chunk.length > 0) await add(chunk);
    staged.parts += chunk.length;
    chunk = [];
    entries = 0;
  };
  for await (const { publicKey, ...history } of histories) {
    staged.blocks += history.blocks.length + (history.leftOut?.blocks ?? 0);
    staged.attestations += history.attestations.length + (history.leftOut?.attestations ?? 0);
    const part = await folded(history);
    chunk.push([publicKey, writePart(part)]);
    entries += 1 + part.blocks.length + part.attestations.length;
    if (entries >= STEP_ENTRIES) await send();
  }
  await send();
  return staged;
}

/** A history of any length as its last entries; a long one in turns of the event loop. */
async function folded(history: HistoryPart): Promise<HistoryPart> {
  const { blocks, attestations, leftOut } = history;
  if (blocks.length + attestations.length <= STEP_ENTRIES) return history;
  const reducer = historyReducer();
  for (let at = 0; at < Math.max(blocks.length, attestations.length); at += STEP_ENTRIES) {
    const end = at + STEP_ENTRIES;
    reducer.add({ blocks: blocks.slice(at, end), attestations: attestations.slice(at, end) });
    await nextTurn();
  }
  if (leftOut !== undefined) reducer.add({ blocks: [], attestations: [], leftOut });
  return reducer.result();
}

export function writePart({ blocks, attestations, leftOut }: HistoryPart): string {
  return JSON.stringify([
    blocks.map(({ slot, signingRoot }) => [slot, hexOf(signingRoot)]),
    attestations.map(({ sourceEpoch, targetEpoch, signingRoot }) => [sourceEpoch, targetEpoch, hexOf(signingRoot)]),
    ...(leftOut === undefined ? [] : [leftOut]),
  ]);
}

export function readPart(text: string): HistoryPart {
  const [blocks, attestations, leftOut] = JSON.parse(text) as [
    [number, string | null][],
    [number, number, string | null][],
    HistoryPart['leftOut'],
  ];
  return {
    blocks: blocks.map(([slot, root]) => ({ slot, signingRoot: bytesOrNull(root) })),
    attestations: attestations.map(([sourceEpoch, targetEpoch, root]) => ({
      sourceEpoch,
      targetEpoch,
      signingRoot: bytesOrNull(root),
    })),
    ...(leftOut === undefined ? {} : { leftOut }),
  };
}

const hexOf = (root: Uint8Array | null): string | null => root && Buffer.from(root).toString('hex');

function bytesOrNull(root: string | null): Uint8Array | null {
  return root === null ? null : Buffer.from(root, 'hex');
}
