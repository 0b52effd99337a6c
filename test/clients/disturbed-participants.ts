// What is done to the participants of distributed keys in the middle of epochs, one after the other, and what their
// audit lines say of a duty: it was signed when as many as the threshold have signed the same root. A refusal is what
// the combiner refused, and not what a participant did that is disturbed.

import { setTimeout as pause } from 'node:timers/promises';
import type { DistributedWorld, Participant } from '../support/participants.ts';
import { type Devnet, SECONDS_PER_SLOT, SLOTS_PER_EPOCH } from './devnet.ts';

type AuditLine = Readonly<Record<string, unknown>>;

/**
 * The last of them is out for the rest of the run: a signer that comes back from a kill, or with older records, jumps
 * over two minutes, which are four epochs here.
 */
export async function disturb({ participants }: DistributedWorld, { genesisTime }: Devnet): Promise<void> {
  const [restored, frozen, liar] = participants as readonly [Participant, Participant, Participant];
  /** From the middle of the first judged epoch on. */
  let slot = SLOTS_PER_EPOCH + SLOTS_PER_EPOCH / 2;
  const afterSlots = async (slots: number): Promise<void> => {
    slot += slots;
    await pause(Math.max(0, (genesisTime + slot * SECONDS_PER_SLOT) * 1000 - Date.now()));
  };
  await afterSlots(0);
  const copy = restored.copyFolder();
  frozen.freeze();
  await afterSlots(4);
  frozen.thaw();
  await afterSlots(2);
  liar.lies = true;
  await afterSlots(4);
  liar.lies = false;
  await afterSlots(2);
  await restored.kill();
  await afterSlots(2);
  restored.restoreFolder(copy);
  await restored.start();
}

export function auditOf({ participants, combiner }: DistributedWorld, threshold: number): readonly AuditLine[] {
  const signed = new Map<string, { readonly line: AuditLine; readonly by: Set<number> }>();
  for (const [index, { log }] of participants.entries()) {
    for (const line of log) {
      if (line['audit'] !== true || line['outcome'] !== 'ok' || line['operation'] === undefined) continue;
      const name = ['operation', 'public_key', 'signing_root'].map((member) => String(line[member])).join(' ');
      const one = signed.get(name) ?? { line, by: new Set() };
      signed.set(name, one);
      one.by.add(index);
    }
  }
  const refused = combiner.lines().filter((line) => line.includes(' refused: '));
  return [
    ...[...signed.values()].flatMap(({ line, by }) => (by.size >= threshold ? [line] : [])),
    ...refused.map((reason) => ({ audit: true, operation: 'by the combiner', outcome: 'refused', reason })),
  ];
}
