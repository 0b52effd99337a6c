// Which clock a jump believes. A clock that is behind makes a floor that is too low, and slashable pairs; one that is
// ahead makes a floor of the future, and nothing is signed until then. After a power cut either is common. So a jump
// goes by the signer's clock only when a witness confirms it and none contradicts it. What keys have signed is no
// witness: a client of one key writes that.

import { inTime } from '../../../common/flow/in-time.ts';
import type { Witness } from '../../../common/observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import type { ChainTime } from '../future.ts';
import { floorAt } from '../jump.ts';
import type { Present } from './doubts.ts';

export interface ClockParts {
  readonly now: () => number;
  /** Undefined: the clock is itself one that is believed, as a security module's is. */
  readonly witnesses: readonly Witness[] | undefined;
  /** `anti_slashing.unsafe_unconfirmed_clock`: no witness is needed, and one that contradicts still counts. */
  readonly needsNoWitness: boolean;
}

/** More than clocks may differ that are set by a time service: what a witness says comes late, and in whole seconds. */
const APART_MS = 12_000;
const WITNESS_WAIT_MS = 2_000;

/** @throws SignerError, from the function: clock_unconfirmed; slashing_unavailable where no genesis time is known */
export function confirmedPresent(chain: ChainTime | undefined, clock: ClockParts): Present {
  return async () => {
    if (chain === undefined) throw new SignerError('slashing_unavailable', { hint: NO_GENESIS_TIME });
    const problem = await doubtOfClock(clock);
    if (problem !== undefined) throw new SignerError('clock_unconfirmed', { hint: problem });
    return floorAt(clock.now(), chain);
  };
}

/** Why the clock is not believed; undefined when it is. */
export async function doubtOfClock({ now, witnesses, needsNoWitness }: ClockParts): Promise<string | undefined> {
  if (witnesses === undefined) return undefined;
  const heard = await Promise.all(
    witnesses.map(async ({ name, ask }) => {
      const signal = AbortSignal.timeout(WITNESS_WAIT_MS);
      const answer = ask(signal).catch(() => undefined);
      const testimony = await inTime(answer, WITNESS_WAIT_MS, () => undefined);
      return { name, confirms: testimony?.confirms === true, aheadMs: testimony && now() - testimony.time };
    }),
  );
  for (const { name, aheadMs = 0 } of heard) {
    if (Math.abs(aheadMs) <= APART_MS) continue;
    const seconds = Math.round(Math.abs(aheadMs) / 1000);
    return `the clock of this signer is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ${name}`;
  }
  if (needsNoWitness || heard.some(({ confirms }) => confirms)) return undefined;
  return `nothing confirms the clock of this signer: ${heard.map(({ name }) => name).join(' and ')} ${heard.length > 1 ? 'do' : 'does'} not`;
}

const NO_GENESIS_TIME =
  'records may have been lost, and the slashing store cannot be raised to the present: set custom_network.genesis_time, ' +
  'or raise it by hand (strongroom slashing jump)';
