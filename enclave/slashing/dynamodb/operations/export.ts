// What the table says of keys: for the EIP-3076 export and for `strongroom slashing status`. DynamoDB has no view of a
// table at one moment; marks only rise, so each exported mark was the highest when it was read, and an export taken
// while keys are signing is right for every key that has stopped. What the floor of the store refuses is exported too.

import { decodeHex } from '../../../../formats/hex.ts';
import { SignerError } from '../../../api/errors.ts';
import type { PublicKeyHex, StoreFloor, ValidatorHistory } from '../../types.ts';
import { MARK_KINDS, type Mark, type MarkKind } from '../tables/items.ts';
import { floorMarks } from '../tables/record.ts';
import { MAX_BATCH_ITEMS, type SlashingTable } from '../tables/table.ts';
import { raisedMark } from './merge.ts';

const KEYS_AT_ONCE = MAX_BATCH_ITEMS / 2;

/** One block and one vote a key at most, in ascending order of keys; keys without either are left out. */
export async function* exportHistories(
  table: SlashingTable,
  floor: StoreFloor | null,
  publicKeys?: readonly PublicKeyHex[],
): AsyncIterable<ValidatorHistory> {
  const wanted = [...new Set(publicKeys ?? (await countMarks(table)).publicKeys)].sort();
  for (let start = 0; start < wanted.length; start += KEYS_AT_ONCE) {
    const some = wanted.slice(start, start + KEYS_AT_ONCE);
    const blocks = await readMarks(table, 'block', some);
    const attestations = await readMarks(table, 'attestation', some);
    for (const [index, publicKey] of some.entries()) {
      const marks = { block: blocks[index], attestation: attestations[index] };
      const raised = MARK_KINDS.map((kind) =>
        floor === null ? marks[kind] : raisedMark(kind, marks[kind], floorMarks(floor)),
      );
      const history = historyOf(publicKey, raised);
      if (history.blocks.length + history.attestations.length > 0) yield history;
    }
  }
}

/** Keys that were retired before they signed anything have no records. */
export async function countMarks(table: SlashingTable) {
  const publicKeys = new Set<PublicKeyHex>();
  const counts = { block: 0, attestation: 0 };
  for await (const page of table.scan()) {
    for (const { key, stored } of page) {
      if (stored !== 'damaged' && stored.mark === undefined) continue;
      publicKeys.add(key.publicKey);
      counts[key.kind] += 1;
    }
  }
  return { publicKeys, counts };
}

async function readMarks(table: SlashingTable, kind: MarkKind, publicKeys: readonly PublicKeyHex[]) {
  const stored = await table.readMany(publicKeys.map((publicKey) => ({ kind, publicKey })));
  return stored.map((item, index) => {
    // An export that left a damaged key out would let it sign anything elsewhere.
    if (item === 'damaged') throw new SignerError('slashing_integrity', { detail: { public_key: publicKeys[index] } });
    return item?.mark;
  });
}

function historyOf(publicKey: PublicKeyHex, marks: readonly (Mark | undefined)[]): ValidatorHistory {
  const blocks: ValidatorHistory['blocks'][number][] = [];
  const attestations: ValidatorHistory['attestations'][number][] = [];
  for (const mark of marks) {
    if (mark === undefined) continue;
    const signingRoot = mark.signingRoot === null ? null : (decodeHex(mark.signingRoot, 32) ?? null);
    if (mark.kind === 'block') blocks.push({ slot: mark.slot, signingRoot });
    else attestations.push({ sourceEpoch: mark.sourceEpoch, targetEpoch: mark.targetEpoch, signingRoot });
  }
  return { publicKey, blocks, attestations };
}
