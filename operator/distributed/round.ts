// The signatures of one client request, and what participants are asked for them: as many as are needed and one more at
// once, the others when one fails or when it takes longer than usual. A participant is asked once for all of them.

import type { Duty } from './duty.ts';
import type { Said } from './partials.ts';
import type { Participant } from './participants.ts';
import { isGone } from './question.ts';

/** @returns what was said of each, in order; throws when there was no answer */
type Ask = (participant: Participant, duties: readonly Duty[]) => Promise<readonly Said[]>;

/** Until each duty has its outcome. @param signal nothing comes any more */
export async function carryOut(duties: readonly Duty[], ask: Ask, lateMs: number, signal: AbortSignal): Promise<void> {
  let change = Promise.withResolvers<void>();
  const onChange = (): void => change.resolve();
  let isLate = false;
  const hurry = (): void => {
    isLate = true;
    onChange();
  };
  const timer = setTimeout(hurry, lateMs);
  signal.addEventListener('abort', onChange, { once: true });
  while (!signal.aborted) {
    const wanted = duties.flatMap((duty) => duty.proceed(isLate, onChange).map((member) => ({ duty, member })));
    if (duties.every(({ outcome }) => outcome !== undefined)) break;
    for (const [participant, asked] of Map.groupBy(wanted, ({ member }) => member.participant)) {
      const answered = ask(
        participant,
        asked.map(({ duty }) => duty),
      ).catch((): readonly Said[] => []);
      void answered.then((said) => {
        if (isGone(signal)) return; // what ended with the client says nothing of the participant
        for (const [place, { duty, member }] of asked.entries()) duty.take(member, said[place]);
        onChange();
      });
    }
    await change.promise;
    change = Promise.withResolvers();
  }
  for (const duty of duties) duty.outcome ??= 'participants_unreachable';
  clearTimeout(timer);
  signal.removeEventListener('abort', onChange);
}

const LEAST_MS = 10;
const MOST_MS = 500;
const STEP = 1.05;

/** When a request is late: after the median time of those before it, which each of them moves a step to its side. */
export class Pace {
  lateMs = 100;

  note(milliseconds: number): void {
    const moved = milliseconds > this.lateMs ? this.lateMs * STEP : this.lateMs / STEP;
    this.lateMs = Math.min(MOST_MS, Math.max(LEAST_MS, moved));
  }
}
