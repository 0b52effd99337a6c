// Slashing protection in front of a backend that answers when the test says so, on a clock of the test. Whoever imports
// it has fake timers in every test.

import { afterEach, beforeEach, vi } from 'vitest';
import { unsafeNoopBackend } from '../../service/noop-store.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { SlashingProtection, type SlashingProtectionOptions } from '../../signer/slashing/protection.ts';
import type {
  BatchLimits,
  Marks,
  SlashableMessage,
  SlashingBackend,
  SlashingVerdict,
} from '../../signer/slashing/types.ts';
import { unrestrained } from '../support/restrained.ts';
import { MAIN_ROOT, quietLog } from '../support/slashing.ts';

export const SAFE: SlashingVerdict = { kind: 'safe', repeat: false };
export const LIMITS: BatchLimits = { maxMessages: 4, maxInFlight: 1, minIntervalMs: 2 };

export interface Batch {
  readonly messages: readonly SlashableMessage[];
  readonly floors: readonly Marks[];
  answer(verdicts?: SlashingVerdict[]): Promise<void>;
  fail(error?: Error): Promise<void>;
}

export function setUp(
  options: SlashingProtectionOptions = {},
  batchLimits: BatchLimits = LIMITS,
  checkHealth: SlashingBackend['checkHealth'] = async () => undefined,
) {
  const batches: Batch[] = [];
  const time = { now: 1000 };
  let closed = 0;
  const closeWaits: (number | undefined)[] = [];
  const backend: SlashingBackend = {
    ...unsafeNoopBackend(MAIN_ROOT),
    batchLimits,
    checkHealth,
    checkAndRecord(messages, floors) {
      const { promise, resolve, reject } = Promise.withResolvers<SlashingVerdict[]>();
      batches.push({
        messages,
        floors,
        answer(verdicts = messages.map(() => SAFE)) {
          resolve(verdicts);
          return turn();
        },
        fail(error = new SignerError('slashing_unavailable')) {
          reject(error);
          return turn();
        },
      });
      return promise;
    },
    async close(waitMs) {
      closed += 1;
      closeWaits.push(waitMs);
    },
  };
  const clock = { now: () => time.now, monotonic: () => time.now };
  const protection = new SlashingProtection(unrestrained(backend), options, { clock, log: quietLog });
  const sizes = () => batches.map(({ messages }) => messages.length);
  const batch = (index: number): Batch => {
    const found = batches[index];
    if (found === undefined) throw new Error(`no batch ${index} was started`);
    return found;
  };
  return { protection, batches, batch, sizes, time, closed: () => closed, closeWaits: () => closeWaits };
}

/** Everything that is due without a timer has happened. */
export async function turn(): Promise<void> {
  for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Checks whose answers are looked at later, or never. */
export function start(check: Promise<unknown>): Promise<unknown> {
  check.catch(() => undefined);
  return check;
}

/** Each check is a batch of its own; the verdict is given, or the commit fails. */
export async function attempt(
  { protection, batches }: ReturnType<typeof setUp>,
  message: SlashableMessage,
  verdict: SlashingVerdict | 'fails',
) {
  const before = batches.length;
  const outcome = start(protection.check(message));
  await turn();
  const asked = batches.length > before;
  if (asked) await (verdict === 'fails' ? batches.at(-1)?.fail() : batches.at(-1)?.answer([verdict]));
  const answer = await outcome.catch((error: unknown) => error);
  return { asked, answer };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});
