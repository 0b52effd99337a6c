// Interchange files as text, whole or in pieces, and a reader of them.

import { readInterchange } from '../../../signer/slashing/interchange/file.ts';
import type { ValidatorHistory } from '../../../signer/slashing/types.ts';
import { collect, MAIN_ROOT, publicKeyOf } from '../../support/slashing.ts';

export const KEY = publicKeyOf(0xabc);
export const ROOT = `0x${'ab'.repeat(32)}`;

export function fileOf(
  data: unknown,
  metadata: unknown = { interchange_format_version: '5', genesis_validators_root: MAIN_ROOT },
) {
  return JSON.stringify({ metadata, data });
}

export async function* bytesOf(text: string, size = text.length): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export function read(text: string, size?: number): Promise<ValidatorHistory[]> {
  return collect(readInterchange(bytesOf(text, size), MAIN_ROOT));
}

export const oneEntry = (entry: unknown) => [
  { pubkey: KEY, signed_blocks: [{ slot: '1' }, entry], signed_attestations: [] },
];
