// A batch of which a part fails: what became of each key, and that nothing that was begun for it is left behind.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { unsafeNoopBackend } from '../../service/noop-store.ts';
import { SignerError } from '../../signer/api/errors.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import type { SigningDependencies } from '../../signer/sign/dependencies.ts';
import { equivocationGuard } from '../../signer/sign/equivocation.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import { type BatchContext, type KeyOutcome, signBatch } from '../../signer/sign/sign-batch.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { secretKeyOf } from '../support/bls.ts';
import { attestation } from '../support/requests.ts';
import { unrestrained } from '../support/restrained.ts';
import { MAIN_ROOT, quietLog } from '../support/slashing.ts';

const COUNT = 12;
const NETWORK = publicNetwork('mainnet');
const never = new AbortController().signal;
let core: BlsCore;
let keys: readonly LoadedKey[];
beforeAll(async () => {
  core = await openBlsCore({ log: quietLog, cores: 1 });
  keys = Array.from({ length: COUNT }, (_, index) => {
    const { handle, publicKey } = core.addKey(secretKeyOf(`key ${index}`));
    return { publicKey: encodeHex(publicKey), handle, source: 'memory', loadedAt: 0, tenure: 0 };
  });
});
afterAll(() => core.close());

function request(): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(attestation())));
  if (parsed.kind !== 'request') throw new Error(parsed.reason);
  return parsed.request;
}

/** Two permits, so that a batch goes on in parts of one key. */
async function run(context: Partial<BatchContext>, changes: Partial<SigningDependencies> = {}, queueLimit = COUNT) {
  const permits = createPermits({ maxConcurrentJobs: 2, queueLimit, priorityJobs: 0 });
  const inFlight = inFlightSigning();
  const slashing = new SlashingProtection(
    unrestrained(unsafeNoopBackend(MAIN_ROOT)),
    {},
    { clock: systemClock, log: quietLog },
  );
  const dependencies: SigningDependencies = {
    ...{ network: NETWORK, core, slashing, permits, inFlight, equivocation: equivocationGuard(NETWORK, systemClock) },
    ...{ priorityOperations: new Set(), canaryKeys: new Set(), onCanary: () => undefined, hindrance: () => undefined },
    ...changes,
  };
  const outcomes: (KeyOutcome | undefined)[] = Array.from({ length: COUNT });
  for (const { publicKey } of keys) inFlight.begin(publicKey);
  const ended = await signBatch(
    request(),
    keys,
    {
      signal: never,
      ...context,
      onOutcome: (place, outcome) => {
        expect(outcomes[place]).toBeUndefined(); // once for each key
        outcomes[place] = outcome;
        context.onOutcome?.(place, outcome);
      },
    },
    dependencies,
  ).catch((error: unknown) => error);
  // Nothing is left: every key can be taken out of service, and every place and permit is there again.
  await inFlight.drain(keys.map(({ publicKey }) => publicKey));
  expect(permits.load('normal')).toEqual({ inFlight: 0, queued: 0 });
  return { ended, outcomes: outcomes.map(nameOf) };
}

function nameOf(outcome: KeyOutcome | undefined): string {
  if (outcome === undefined) return 'undecided';
  if (outcome.kind === 'failed') return outcome.error instanceof SignerError ? outcome.error.reason : 'a bug';
  return outcome.kind === 'signed' ? 'signed' : outcome.reason;
}

const times = (count: number, name: string): string[] => Array.from({ length: count }, () => name);

it('every key is signed when nothing fails', async () => {
  expect(await run({})).toEqual({ ended: undefined, outcomes: times(COUNT, 'signed') });
});

it('a right that is lost after the store has answered releases no signature', async () => {
  let isLost = false;
  const signGroup: BlsCore['signGroup'] = async (...given) => {
    const signatures = await core.signGroup(...given);
    isLost = true;
    return signatures;
  };
  const losing = { signGroup } as unknown as BlsCore;
  const hindrance = () => (isLost ? 'slashing_unbound' : undefined);
  expect((await run({}, { core: losing, hindrance })).outcomes).toEqual(times(COUNT, 'slashing_unbound'));
});

it('a signer that is sealed in the middle signs with no further key', async () => {
  let signed = 0;
  const onOutcome = (_place: number, { kind }: KeyOutcome) => {
    if (kind === 'signed') signed += 1;
  };
  const hindrance = () => (signed >= 3 ? 'sealed' : undefined);
  expect((await run({ onOutcome }, { hindrance })).outcomes).toEqual([
    ...times(3, 'signed'),
    ...times(COUNT - 3, 'sealed'),
  ]);
});

it('a client that goes away in the middle gives up the keys that have not begun', async () => {
  const client = new AbortController();
  const onOutcome: BatchContext['onOutcome'] = (place) => {
    if (place === 2) client.abort(new SignerError('client_closed'));
  };
  const { outcomes } = await run({ signal: client.signal, onOutcome });
  expect(outcomes).toEqual([...times(3, 'signed'), ...times(COUNT - 3, 'client_closed')]);
});

it('with fewer places than keys nothing is done', async () => {
  expect(await run({}, {}, COUNT - 1)).toMatchObject({
    ended: { reason: 'overloaded' },
    outcomes: times(COUNT, 'undecided'),
  });
});

it.each([
  ['slashing protection', { slashing: { check: fail, checkGroup: fail } }, 'slashing_unavailable'],
  ['the core', { core: { signGroup: fail } as unknown as BlsCore }, 'slashing_unavailable'],
])('a fault of %s is the outcome of each key', async (_what, changes, reason) => {
  expect((await run({}, changes as Partial<SigningDependencies>)).outcomes).toEqual(times(COUNT, reason));
});

function fail(): Promise<never> {
  return Promise.reject(new SignerError('slashing_unavailable'));
}
