// The exports under way, by their numbers, in pieces as the main thread asks for them. While one is open, the
// write-ahead log keeps all that is written after it: one whose reader is gone ends with the next call of any other.

import type { Clock } from '../../../common/observe/clock.ts';
import { type StagedText, writePart } from '../operations/import-text.ts';
import { STEP_ENTRIES } from '../operations/store.ts';
import type { PublicKeyHex, ValidatorHistory } from '../types.ts';

const ANSWER_VALIDATORS = 200;
const MAX_EXPORTS = 128;
export const EXPORT_STALL_MS = 60_000;

type Histories = AsyncGenerator<ValidatorHistory>;

interface HeldExport {
  readonly histories: Histories;
  askedAt: number;
  isReading: boolean;
}

export function heldExports(
  open: (publicKeys: readonly PublicKeyHex[] | undefined) => Histories,
  clock: Pick<Clock, 'monotonic'>,
) {
  const held = new Map<number, HeldExport>();

  async function end(exportId: number): Promise<void> {
    const one = held.get(exportId);
    held.delete(exportId);
    await one?.histories.return(undefined).catch(() => undefined); // it is gone either way
  }

  return {
    held: held as { readonly size: number },
    begin(exportId: number, publicKeys: readonly PublicKeyHex[] | undefined): void {
      if (held.size >= MAX_EXPORTS) throw new Error('too many exports are under way');
      held.set(exportId, { histories: open(publicKeys), askedAt: clock.monotonic(), isReading: false });
    },
    async next(exportId: number): Promise<StagedText[]> {
      const one = held.get(exportId);
      if (one === undefined) throw new Error('the export is over');
      one.isReading = true;
      const answer: StagedText[] = [];
      try {
        for (let entries = 0; answer.length < ANSWER_VALIDATORS && entries < STEP_ENTRIES; ) {
          const { done, value } = await one.histories.next();
          if (done === true) break;
          answer.push([value.publicKey, writePart(value)]);
          entries += 1 + value.blocks.length + value.attestations.length;
        }
      } finally {
        one.isReading = false;
        one.askedAt = clock.monotonic();
      }
      return answer;
    },
    end,
    async endStalled(): Promise<void> {
      for (const [exportId, { askedAt, isReading }] of held) {
        if (!isReading && clock.monotonic() - askedAt > EXPORT_STALL_MS) await end(exportId);
      }
    },
    async endAll(): Promise<void> {
      for (const exportId of held.keys()) await end(exportId);
    },
  };
}
