// What an auditor says that keys signed, and what logs have of it: an EIP-3076 file, or lines with signing roots. A BLS
// signature follows from key and root, so a list has these, and no signatures. It refuses a list of another form as a
// whole: a line that is passed over would never be missing.

import { z } from 'zod';
import { bounded } from '../../common/command-line/text.ts';
import { canonicalPublicKey, decodeHex, encodeHex } from '../../common/formats/hex.ts';
import { parseJson } from '../../common/formats/parse-json.ts';
import type { ReceiptEntry } from '../../common/receipts/entry.ts';
import type { LogKind } from '../../common/receipts/identity.ts';
import { UsageFailure } from '../exit.ts';
import { readLogBytes } from './folder.ts';

const MAX_SIGNED = 2_000_000;
const MAX_FILE_BYTES = 256 * 1024 * 1024;

interface SignedItem {
  readonly public_key?: string;
  readonly signing_root?: string;
  readonly slot?: number;
  readonly source_epoch?: number;
  readonly target_epoch?: number;
}

export interface SignedList {
  readonly items: readonly SignedItem[];
  /** Hex with 0x; undefined when the list does not say. */
  readonly genesisValidatorsRoot: string | undefined;
}

const number = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,15})$/)
  .transform(Number);
const root = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase())
  .exactOptional();
const interchangeSchema = z.object({
  metadata: z.object({ interchange_format_version: z.literal('5'), genesis_validators_root: z.string() }),
  data: z.array(
    z.object({
      pubkey: z.string(),
      signed_blocks: z.array(z.object({ slot: number, signing_root: root })),
      signed_attestations: z.array(z.object({ source_epoch: number, target_epoch: number, signing_root: root })),
    }),
  ),
});

/** Of `--signed`. @throws CommandFailure */
export function readListFile(path: string): SignedList {
  const origin = `--signed: ${bounded(path, 200)}`;
  const text = readLogBytes(path, MAX_FILE_BYTES, origin).toString('utf8');
  const list = text.trimStart().startsWith('{') ? readInterchange(text, origin) : readLines(text, origin);
  if (list.items.length === 0) throw new UsageFailure(`${origin} names nothing that was signed`);
  if (list.items.length > MAX_SIGNED) throw new UsageFailure(`${origin} names more than ${MAX_SIGNED} messages`);
  return list;
}

function readInterchange(text: string, origin: string): SignedList {
  const parsed = interchangeSchema.safeParse(parseJson(text)).data;
  if (parsed === undefined) throw new UsageFailure(`${origin} is no EIP-3076 file of version 5`);
  const items = parsed.data.flatMap(({ pubkey, signed_blocks, signed_attestations }) => {
    const public_key = canonicalPublicKey(pubkey);
    if (public_key === undefined) throw new UsageFailure(`${origin} has a public key of another form`);
    return [...signed_blocks, ...signed_attestations].map((message) => ({ public_key, ...message }));
  });
  return { items, genesisValidatorsRoot: parsed.metadata.genesis_validators_root.toLowerCase() };
}

function readLines(text: string, origin: string): SignedList {
  const items = text.split('\n').flatMap((line, index): SignedItem[] => {
    const words = line.trim().split(/[\s,]+/);
    if (words[0] === '') return [];
    const [last = '', key, ...more] = words.toReversed();
    const bytes = decodeHex(last, 32);
    const public_key = key === undefined ? undefined : canonicalPublicKey(key);
    if (bytes === undefined || more.length > 0 || (key !== undefined && public_key === undefined)) {
      throw new UsageFailure(`${origin}, line ${index + 1}: a signing root is needed, and before it a key or nothing`);
    }
    return [{ ...(public_key === undefined ? {} : { public_key }), signing_root: encodeHex(bytes) }];
  });
  return { items, genesisValidatorsRoot: undefined };
}

export interface MissingItem extends SignedItem {
  /** The log says that this was refused; undefined: it says nothing of it. */
  readonly refused?: string;
}

/** Which of the items no log has as signed. Show it all that is known, then ask. */
export class SignedSearch {
  readonly #waiting = new Map<string, SignedItem[]>();
  readonly #refused = new Map<SignedItem, string>();
  readonly listed: number;
  /** Items that were found in logs without an attestation. */
  unattested = 0;

  constructor({ items }: SignedList) {
    this.listed = items.length;
    for (const item of items) {
      const place = placeOf(item);
      const others = this.#waiting.get(place);
      if (others === undefined) this.#waiting.set(place, [item]);
      else others.push(item);
    }
  }

  /** @returns whether it is of the list, and signed */
  see(entry: ReceiptEntry, accepted: LogKind): boolean {
    const publicKey = encodeHex(entry.publicKey);
    let found = 0;
    for (const place of placesOf(entry, publicKey)) {
      const items = this.#waiting.get(place) ?? [];
      const others = items.filter(({ public_key }) => public_key !== undefined && public_key !== publicKey);
      if (others.length === items.length) continue;
      if (entry.reason === null) {
        found += items.length - others.length;
        if (others.length === 0) this.#waiting.delete(place);
        else this.#waiting.set(place, others);
      } else {
        for (const item of items) if (!others.includes(item)) this.#refused.set(item, entry.reason);
      }
    }
    if (accepted === 'unattested') this.unattested += found;
    return found > 0;
  }

  get missing(): MissingItem[] {
    return [...this.#waiting.values()].flat().map((item) => {
      const refused = this.#refused.get(item);
      return refused === undefined ? item : { ...item, refused };
    });
  }
}

/** A message with a root is that root's; one without is known by its key and its place on the chain. */
function placeOf({ public_key, signing_root, slot, source_epoch, target_epoch }: SignedItem): string {
  if (signing_root !== undefined) return signing_root;
  return slot === undefined ? `vote ${public_key} ${source_epoch} ${target_epoch}` : `block ${public_key} ${slot}`;
}

function placesOf({ operation, position, signingRoot }: ReceiptEntry, publicKey: string): string[] {
  const root = signingRoot === null ? [] : [encodeHex(signingRoot)];
  const { slot, sourceEpoch, targetEpoch } = position;
  if (operation === 'ATTESTATION') return [...root, `vote ${publicKey} ${sourceEpoch} ${targetEpoch}`];
  return operation === 'BLOCK_V2' ? [...root, `block ${publicKey} ${slot}`] : root;
}
