// The right to sign between admission and release, over a real store and a real core: each of its two later questions
// is needed, and both are enough, on every way to a signature (signer/sign/right.ts). That the first is needed, at
// admission, is in test/http and test/chamber.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { systemClock } from '../../common/observe/clock.ts';
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
import { hindranceOf } from '../../signer/sign/right.ts';
import { sign } from '../../signer/sign/sign.ts';
import { signBatch } from '../../signer/sign/sign-batch.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { restrainStore } from '../../signer/slashing/restraints.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { secretKeyOf } from '../support/bls.ts';
import { attestation, randaoReveal } from '../support/requests.ts';
import { collect, MAIN_ROOT, quietLog } from '../support/slashing.ts';

const NETWORK = publicNetwork('mainnet');
const signal = new AbortController().signal;

let core: BlsCore;
let key: LoadedKey;
beforeAll(async () => {
  core = await openBlsCore({ log: quietLog, cores: 1 });
  const { handle, publicKey } = core.addKey(secretKeyOf('key of the right'));
  key = { publicKey: encodeHex(publicKey), handle, source: 'memory', loadedAt: 0, tenure: 0 };
});
afterAll(() => core.close());

/** What takes the right away. */
const LOSSES = {
  'a latch': { sealed: true, unbound: false, reason: 'sealed' },
  'a binding that is lost': { sealed: false, unbound: true, reason: 'slashing_unbound' },
} as const;
type Loss = keyof typeof LOSSES;

let folder: string;
let bare: SlashingBackend;
let state: { sealed: boolean; unbound: boolean };
/** Called while the store records, and while the core signs. */
let during: { record: () => void; signature: () => void };
let slashing: SlashingProtection;
let batches: number;
let dependencies: SigningDependencies;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-right-'));
  const path = join(folder, 'slashing.sqlite');
  bare = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  state = { sealed: false, unbound: false };
  during = { record: () => undefined, signature: () => undefined };
  batches = 0;
  const watched: SlashingBackend = {
    ...bare,
    async checkAndRecord(messages, floors) {
      batches += 1;
      const verdicts = await bare.checkAndRecord(messages, floors);
      during.record();
      return verdicts;
    },
  };
  const store = restrainStore(watched, { hindrance: () => (state.unbound ? 'slashing_unbound' : undefined) });
  const watchedCore = {
    sign: (...given: Parameters<BlsCore['sign']>) => core.sign(...given).finally(() => during.signature()),
    signGroup: (...given: Parameters<BlsCore['signGroup']>) =>
      core.signGroup(...given).finally(() => during.signature()),
  };
  const chamber = {
    get state() {
      return state.sealed ? ('Sealed' as const) : ('Unsealed' as const);
    },
  };
  const right = hindranceOf({ custody: { chamber }, store });
  slashing = new SlashingProtection(store, { right }, { clock: systemClock, log: quietLog });
  dependencies = {
    network: NETWORK,
    core: watchedCore as unknown as BlsCore,
    slashing,
    permits: createPermits({ maxConcurrentJobs: 4, queueLimit: 4, priorityJobs: 0 }),
    inFlight: inFlightSigning(),
    equivocation: equivocationGuard(NETWORK, systemClock),
    priorityOperations: new Set(),
    canaryKeys: new Set(),
    onCanary: () => undefined,
    hindrance: right,
  };
});
afterEach(async () => {
  await slashing.close();
  rmSync(folder, { recursive: true, force: true });
});

const VOTE = attestation({ source: 1, target: 3 });
const MESSAGES = { recorded: VOTE, 'not recorded': randaoReveal() } as const;

function requestOf(body: object): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind !== 'request') throw new Error(parsed.reason);
  return parsed.request;
}

/** `signed`, or why not. */
const WAYS: Readonly<Record<string, (body: object) => Promise<string>>> = {
  sign: (body) =>
    sign(requestOf(body), key, { signal }, dependencies).then(
      (outcome) => (outcome.kind === 'signed' ? 'signed' : outcome.reason),
      (error: unknown) => (error instanceof SignerError ? error.reason : expect.unreachable(String(error))),
    ),
  async signBatch(body) {
    let said = 'undecided';
    dependencies.inFlight.begin(key.publicKey);
    const refused = await signBatch(
      requestOf(body),
      [key],
      {
        signal,
        onOutcome: (_place, outcome) => {
          if (outcome.kind === 'signed') said = 'signed';
          else if (outcome.kind === 'refused') said = outcome.reason;
          else said = outcome.error instanceof SignerError ? outcome.error.reason : String(outcome.error);
        },
      },
      dependencies,
    );
    return refused?.reason ?? said;
  },
};

const lose = (loss: Loss): void => void Object.assign(state, LOSSES[loss]);
const giveBack = (): void => void Object.assign(state, { sealed: false, unbound: false });
const recorded = async () => (await collect(bare.exportHistories())).flatMap(({ attestations }) => attestations).length;

describe.each(Object.entries(WAYS))('%s', (_way, ask) => {
  it.each(Object.keys(LOSSES) as Loss[])('%s between record and release releases nothing', async (loss) => {
    for (const [name, body] of Object.entries(MESSAGES)) {
      during.signature = () => lose(loss); // a process that stood still: it goes on when the signature is there
      expect([name, await ask(body)]).toEqual([name, LOSSES[loss].reason]);
      giveBack();
    }
    expect(await recorded()).toBe(1);
  });

  it.each(Object.keys(LOSSES) as Loss[])('%s while the store records releases nothing', async (loss) => {
    during.record = () => lose(loss);
    expect(await ask(VOTE)).toBe(LOSSES[loss].reason);
    expect(await recorded()).toBe(1);
  });

  it.each(Object.keys(LOSSES) as Loss[])('%s between admission and record reaches no store', async (loss) => {
    const asked = ask(VOTE); // the batch is taken in a later turn of the event loop
    lose(loss);
    expect(await asked).toBe(LOSSES[loss].reason);
    expect([batches, await recorded()]).toEqual([0, 0]);
  });

  it('a right that comes back after the record was begun without one releases nothing', async () => {
    // With its jump: another signer may have signed over its own store meanwhile, which the record does not know.
    during.record = giveBack;
    const asked = ask(VOTE);
    lose('a binding that is lost');
    expect(await asked).toBe('slashing_unbound');
  });

  it('what was refused for want of the right is signed with it, and so is another message in its place', async () => {
    const asked = ask(VOTE);
    lose('a binding that is lost');
    await asked;
    giveBack();
    expect(await ask(attestation({ source: 2, target: 3 }))).toBe('signed'); // nothing was attempted: no doubt
  });
});
