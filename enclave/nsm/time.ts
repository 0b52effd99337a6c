// The time by the Nitro Secure Module, which the parent does not set (specification/enclave.md#time).

import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { Nsm } from '../../signer/tee/nsm.ts';
import { evidenceOf } from './evidence.ts';

const READ_EVERY_MS = 60_000;

interface NsmClock {
  now(): number;
  /** Rejects, and goes on by the last reading, when the module does not answer. */
  read(): Promise<void>;
}

export async function openNsmClock(
  nsm: Pick<Nsm, 'attest' | 'signsNothing'>,
  clock: Pick<Clock, 'monotonic'>,
): Promise<NsmClock> {
  let anchor = await readAnchor(nsm, clock);
  return {
    now: () => anchor.time + (clock.monotonic() - anchor.monotonic),
    async read() {
      anchor = await readAnchor(nsm, clock);
    },
  };
}

/** A reading that fails is logged and stops nothing. */
export function keepReading(
  nsmClock: Pick<NsmClock, 'read'>,
  log: Log,
  opened: AsyncDisposableStack,
  everyMs = READ_EVERY_MS,
): void {
  const timer = setInterval(() => {
    nsmClock.read().catch((error: unknown) => log.warn({ err: error }, 'the Nitro Secure Module did not say its time'));
  }, everyMs);
  timer.unref();
  opened.defer(() => clearInterval(timer));
}

async function readAnchor(nsm: Pick<Nsm, 'attest' | 'signsNothing'>, clock: Pick<Clock, 'monotonic'>) {
  const { timestamp, validFrom } = evidenceOf(await nsm.attest({}), nsm);
  if (timestamp < validFrom) {
    throw new Error('the time of the Nitro Secure Module is behind its own certificates: it cannot be relied on');
  }
  // After the answer: the time that is carried on is never ahead of the module's.
  return { time: timestamp, monotonic: clock.monotonic() };
}
