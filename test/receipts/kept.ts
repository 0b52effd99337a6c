// What a storage of receipts holds, as an auditor finds it, and what the verifier says of it.

import { MAX_HEAD_BYTES, type ReadHead, readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT, decodeBundle, headPath, IDENTITY, tilePath } from '../../common/receipts/tiles.ts';
import { TILE_WIDTH } from '../../common/receipts/tree.ts';
import { type DocumentJudge, type ShownBoot, verifyReceipts } from '../../common/receipts/verify.ts';
import type { ReceiptStorage } from '../../signer/receipts/storage.ts';

type Reading = Pick<ReceiptStorage, 'boots' | 'read'>;

interface KeptBoot extends ShownBoot {
  readonly boot: string;
  readonly heads: readonly string[];
}

export async function keptBoots(storage: Reading): Promise<readonly KeptBoot[]> {
  return await Promise.all((await storage.boots()).map((boot) => keptBoot(storage, boot)));
}

export async function faultsOf(storage: Reading, isAttested: DocumentJudge = () => false): Promise<string[]> {
  const { findings } = verifyReceipts(await keptBoots(storage), isAttested);
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
  const { size } = headOf(await text(CHECKPOINT));
  const entries: Buffer[] = [];
  for (let index = 0; index * TILE_WIDTH < size; index++) {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const partial = await storage.read(boot, tilePath('entries', index, width));
    const bundle = partial ?? (await storage.read(boot, tilePath('entries', index, TILE_WIDTH)));
    entries.push(...(decodeBundle(bundle ?? Buffer.alloc(0))?.slice(0, width) ?? []));
  }
  return { boot, identity: (await text(IDENTITY))?.trimEnd() ?? '', heads, entries };
}
