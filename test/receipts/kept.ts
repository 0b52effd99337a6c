// What a storage of receipts holds, as an auditor finds it, and what the verifier says of it.

import { MAX_HEAD_BYTES, type ReadHead, readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, decodeBundle, headPath, IDENTITY, tilePath } from '../../common/receipts/tiles.ts';
import { TILE_WIDTH } from '../../common/receipts/tree.ts';
import {
  type DocumentJudge,
  type Question,
  type ShownBoot,
  type ShownEntry,
  verifyReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import { removedOf } from '../../operator/receipts/folder.ts';
import type { ReceiptStorage } from '../../signer/receipts/storage.ts';

type Reading = Pick<ReceiptStorage, 'boots' | 'read'>;

interface KeptBoot extends ShownBoot {
  readonly boot: string;
  readonly heads: readonly string[];
}

export async function keptBoots(storage: Reading): Promise<readonly KeptBoot[]> {
  return await Promise.all((await storage.boots()).map((boot) => keptBoot(storage, boot)));
}

export async function faultsOf(
  storage: Reading,
  isAttested: DocumentJudge = () => false,
  question: Question = WHOLE_LOGS,
): Promise<string[]> {
  const { findings } = verifyReceipts(await keptBoots(storage), isAttested, question);
  return [...new Set(findings.map(({ fault }) => fault))].toSorted();
}

export function headOf(note: string | undefined): ReadHead {
  const head = readHead(note ?? '');
  if (head === undefined) throw new Error(`no head: ${note?.slice(0, MAX_HEAD_BYTES)}`);
  return head;
}

async function keptBoot(storage: Reading, boot: string): Promise<KeptBoot> {
  const text = async (path: string): Promise<string | undefined> => (await storage.read(boot, path))?.toString('utf8');
  const heads: string[] = [];
  for (let next = await text(headPath(0)); next !== undefined; next = await text(headPath(heads.length))) {
    heads.push(next);
  }
  // A process that was killed may have kept a head that the checkpoint does not show yet.
  const { size } = headOf(heads.at(-1) ?? (await text(CHECKPOINT)));
  const entries: ShownEntry[] = [];
  for (let index = 0; index * TILE_WIDTH < size; index++) {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const partial = await storage.read(boot, tilePath('entries', index, width));
    const bundle = partial ?? (await storage.read(boot, tilePath('entries', index, TILE_WIDTH)));
    const hashes = bundle === undefined ? await storage.read(boot, tilePath(0, index, TILE_WIDTH)) : undefined;
    if (hashes === undefined) entries.push(...(decodeBundle(bundle ?? Buffer.alloc(0))?.slice(0, width) ?? []));
    else entries.push(...(removedOf(hashes) ?? []));
  }
  return { boot, identity: (await text(IDENTITY))?.trimEnd() ?? '', heads, entries };
}
