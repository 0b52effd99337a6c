// At most one signature for different content in one place (specification/signing.md#equivocation): what is claimed by
// the first content, for how long, and what is done when there is no room to remember it.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import type { SigningDependencies } from '../../signer/sign/dependencies.ts';
import { equivocationGuard, MAX_CLAIMS, MAX_CLAIMS_PER_KEY } from '../../signer/sign/equivocation.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import { sign } from '../../signer/sign/sign.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { messageAt } from '../support/fork-messages.ts';

const NETWORK = publicNetwork('sepolia');
const GENESIS_MS = 1_655_733_600_000;
const SLOT = 11_296_845;
const EPOCH_MS = 32 * 12_000;
const KEY = `0x${'aa'.repeat(48)}`;
const FORKS = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
const ROOT = new Uint8Array(32).fill(1);
const OTHER_ROOT = new Uint8Array(32).fill(2);

function request(type: string, slot = SLOT, changed: object = {}): SignRequest {
  const body = messageAt(NETWORK, type, slot, FORKS);
  const member = type.toLowerCase();
  const parsed = parseSignRequest(
    Buffer.from(JSON.stringify({ ...body, [member]: { ...(body[member] as object), ...changed } })),
  );
  if (parsed.kind === 'refused') throw new Error(parsed.hint);
  return parsed.request;
}

/** A clock that stands at the middle of a slot until it is moved. */
function clockAt(slot: number) {
  let passedMs = 0;
  return {
    now: () => GENESIS_MS + slot * 12_000 + 6000 + passedMs,
    monotonic: () => 1000 + passedMs,
    pass(ms: number): void {
      passedMs += ms;
    },
  };
}

const attesting = request('PAYLOAD_ATTESTATION_MESSAGE');

describe.each(['PAYLOAD_ATTESTATION_MESSAGE', 'EXECUTION_PAYLOAD_ENVELOPE', 'EXECUTION_PAYLOAD_BID'])(
  'a %s',
  (type) => {
    it('is signed again with the same content, and refused with other content', () => {
      const guard = equivocationGuard(NETWORK, clockAt(SLOT));
      expect(guard.claim(KEY, request(type), ROOT)).toBeUndefined();
      expect(guard.claim(KEY, request(type), Uint8Array.from(ROOT))).toBeUndefined();
      expect(guard.claim(KEY, request(type), OTHER_ROOT)).toBe('equivocation');
      expect(guard.claim(KEY, request(type), ROOT)).toBeUndefined();
      expect(guard.claims).toBe(1);
    });

    it('stands in nobody else’s way: another key, another slot', () => {
      const guard = equivocationGuard(NETWORK, clockAt(SLOT));
      guard.claim(KEY, request(type), ROOT);
      expect(guard.claim(`0x${'bb'.repeat(48)}`, request(type), OTHER_ROOT)).toBeUndefined();
      expect(guard.claim(KEY, request(type, SLOT + 1), OTHER_ROOT)).toBeUndefined();
    });
  },
);

describe('a claim', () => {
  it('of a bid is for its parent: another block, or the same one without its payload', () => {
    const guard = equivocationGuard(NETWORK, clockAt(SLOT));
    guard.claim(KEY, request('EXECUTION_PAYLOAD_BID'), ROOT);
    for (const changed of [
      { parent_block_root: `0x${'44'.repeat(32)}` },
      { parent_block_hash: `0x${'55'.repeat(32)}` },
    ]) {
      expect(guard.claim(KEY, request('EXECUTION_PAYLOAD_BID', SLOT, changed), OTHER_ROOT)).toBeUndefined();
    }
  });

  it('of one operation is none of another', () => {
    const guard = equivocationGuard(NETWORK, clockAt(SLOT));
    guard.claim(KEY, attesting, ROOT);
    expect(guard.claim(KEY, request('EXECUTION_PAYLOAD_ENVELOPE'), OTHER_ROOT)).toBeUndefined();
    expect(guard.claim(KEY, request('EXECUTION_PAYLOAD_BID'), OTHER_ROOT)).toBeUndefined();
  });

  it.each(['ATTESTATION', 'PROPOSER_PREFERENCES', 'BUILDER_REQUEST_AUTH', 'BLOCK_V2'])('is not made by %s', (type) => {
    const guard = equivocationGuard(NETWORK, clockAt(SLOT));
    expect(guard.claim(KEY, request(type), ROOT)).toBeUndefined();
    expect(guard.claim(KEY, request(type), OTHER_ROOT)).toBeUndefined();
    expect(guard.claims).toBe(0);
  });

  it.each([SLOT - 1_000_000, SLOT])('is held for two epochs after its signature: slot %i', (slot) => {
    const clock = clockAt(SLOT);
    const guard = equivocationGuard(NETWORK, clock);
    guard.claim(KEY, request('PAYLOAD_ATTESTATION_MESSAGE', Math.max(slot, 353_024 * 32)), ROOT);
    clock.pass(2 * EPOCH_MS - 1);
    guard.claim(KEY, request('PAYLOAD_ATTESTATION_MESSAGE', SLOT + 64), ROOT);
    expect(guard.claims).toBe(2);
    clock.pass(EPOCH_MS + 1);
    guard.claim(KEY, request('PAYLOAD_ATTESTATION_MESSAGE', SLOT + 65), ROOT);
    expect(guard.claims).toBe(2);
  });

  it('of a slot that is still to come is held for two epochs after that', () => {
    const clock = clockAt(SLOT);
    const guard = equivocationGuard(NETWORK, clock);
    const future = request('PAYLOAD_ATTESTATION_MESSAGE', SLOT + 1);
    expect(guard.claim(KEY, future, ROOT)).toBeUndefined();
    clock.pass(6000 + 2 * EPOCH_MS - 1); // the next sweep of claims is after this
    expect(guard.claim(KEY, future, OTHER_ROOT)).toBe('equivocation');
    clock.pass(EPOCH_MS);
    expect(guard.claim(KEY, future, OTHER_ROOT)).toBeUndefined();
  });

  it.each([
    ['PAYLOAD_ATTESTATION_MESSAGE', 0],
    ['EXECUTION_PAYLOAD_ENVELOPE', 0],
    ['EXECUTION_PAYLOAD_BID', 12], // which builders make in the slot before
  ])('of a %s is refused further ahead of the clock than its tolerance, and takes no room', (type, more) => {
    for (const aheadSeconds of [12, 60, 120]) {
      const time = NETWORK.time && { ...NETWORK.time, tolerance: { aheadSeconds, jumpSeconds: 120 } };
      const clock = clockAt(SLOT);
      const guard = equivocationGuard({ ...NETWORK, time }, clock);
      const first = SLOT + (aheadSeconds + more) / 12 + 1; // the clock stands in the middle of a slot: 6 s too early
      for (let slot = first; slot < first + 100; slot++)
        expect(guard.claim(KEY, request(type, slot), ROOT)).toBe('ahead_of_clock');
      clock.pass(5000);
      expect(guard.claim(KEY, request(type, first), ROOT)).toBe('ahead_of_clock');
      expect(guard.claims).toBe(0);
      clock.pass(1000);
      expect(guard.claim(KEY, request(type, first), ROOT)).toBeUndefined();
      expect(guard.claims).toBe(1);
    }
  });

  it('without a genesis time is held for two epochs after its signature', () => {
    const clock = clockAt(SLOT);
    const guard = equivocationGuard({ ...NETWORK, time: undefined }, clock);
    guard.claim(KEY, attesting, ROOT);
    clock.pass(EPOCH_MS);
    expect(guard.claim(KEY, attesting, OTHER_ROOT)).toBe('equivocation');
    clock.pass(2 * EPOCH_MS);
    expect(guard.claim(KEY, attesting, OTHER_ROOT)).toBeUndefined();
  });
});

describe('the memory of claims', () => {
  const at = (slot: number): SignRequest =>
    ({ ...attesting, message: { ...attesting.message, slot } }) as unknown as SignRequest;

  it('is bounded for a key: what is not remembered is not signed, and other keys go on', () => {
    const guard = equivocationGuard(NETWORK, clockAt(SLOT));
    for (let slot = 0; slot < MAX_CLAIMS_PER_KEY; slot++) guard.claim(KEY, at(slot), ROOT);
    expect(() => guard.claim(KEY, at(MAX_CLAIMS_PER_KEY), ROOT)).toThrow(
      expect.objectContaining({ reason: 'overloaded' }),
    );
    expect(guard.claim(KEY, at(0), OTHER_ROOT)).toBe('equivocation');
    expect(guard.claim('another', at(0), OTHER_ROOT)).toBeUndefined();
  });

  it('keeps room for keys with few claims, whatever a few keys claim, and none for slots that never come', () => {
    const guard = equivocationGuard(NETWORK, clockAt(SLOT));
    const isRefused = (publicKey: string, slot: number): boolean => {
      try {
        return guard.claim(publicKey, at(slot), ROOT) !== undefined;
      } catch {
        return true;
      }
    };
    const greed = (last: number): void => {
      for (let key = 0; key < MAX_CLAIMS / MAX_CLAIMS_PER_KEY; key++) {
        for (let slot = last; slot > last - MAX_CLAIMS_PER_KEY; slot--) if (isRefused(`greedy ${key}`, slot)) break;
      }
    };
    greed(Number.MAX_SAFE_INTEGER);
    expect(guard.claims).toBe(0);
    greed(SLOT - 1);
    expect(guard.claims).toBeGreaterThanOrEqual((MAX_CLAIMS / 4) * 3);
    expect(guard.claim('another', at(SLOT), ROOT)).toBeUndefined();
    expect(guard.claim('another', at(SLOT), OTHER_ROOT)).toBe('equivocation');
    expect(isRefused('greedy 0', SLOT)).toBe(true);
    for (let key = 0; guard.claims < MAX_CLAIMS; key++) expect(isRefused(`modest ${key}`, SLOT)).toBe(false);
    expect(isRefused('one too many', SLOT)).toBe(true);
  });

  it('is bounded as a whole, and has room again when claims are over', () => {
    const clock = clockAt(SLOT);
    const guard = equivocationGuard(NETWORK, clock);
    for (let made = 0; made < MAX_CLAIMS; made++) guard.claim(`key ${made >> 4}`, at(made & 15), ROOT);
    expect(guard.claims).toBe(MAX_CLAIMS);
    expect(() => guard.claim('another', at(0), ROOT)).toThrow(expect.objectContaining({ reason: 'overloaded' }));
    clock.pass(2 * EPOCH_MS);
    expect(guard.claim('another', at(0), ROOT)).toBeUndefined();
    expect(guard.claims).toBe(1);
  });
});

describe('signing', () => {
  const key: LoadedKey = {
    publicKey: KEY,
    handle: {} as LoadedKey['handle'],
    source: 'memory',
    loadedAt: 0,
    tenure: 0,
  };

  function dependencies(core: (root: Uint8Array) => Promise<Uint8Array>): SigningDependencies {
    return {
      network: NETWORK,
      core: { sign: (_handle: unknown, root: Uint8Array) => core(root) } as unknown as SigningDependencies['core'],
      slashing: {
        check: () => Promise.reject(new Error('nothing here is slashable')),
        checkGroup: () => Promise.reject(new Error('nothing here is slashable')),
        signedBlockRoot: () => Promise.reject(new Error('no rule asks for it')),
      },
      permits: createPermits({ maxConcurrentJobs: 10, queueLimit: 0, priorityJobs: 0 }),
      inFlight: inFlightSigning(),
      equivocation: equivocationGuard(NETWORK, clockAt(SLOT)),
      priorityOperations: new Set(),
      canaryKeys: new Set(),
      onCanary: () => undefined,
      hindrance: () => undefined,
    };
  }
  const other = request('PAYLOAD_ATTESTATION_MESSAGE', SLOT, { payload_present: false });
  const context = { signal: new AbortController().signal };

  it('of two messages at once in one place releases one signature', async () => {
    const begun: Uint8Array[] = [];
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const parts = dependencies(async (root) => {
      begun.push(root);
      await go;
      return root;
    });
    const outcomes = [attesting, other, attesting, other].map((message) => sign(message, key, context, parts));
    await nextTurn();
    resolve();
    expect(
      (await Promise.all(outcomes)).map((outcome) => (outcome.kind === 'signed' ? 'signed' : outcome.reason)),
    ).toEqual(['signed', 'equivocation', 'signed', 'equivocation']);
    expect(begun).toHaveLength(2);
    expect(begun[0]).toEqual(begun[1]);
  });

  it('that fails leaves its claim: nobody knows how far the signature came', async () => {
    const parts = dependencies(() => Promise.reject(new Error('the core is gone')));
    await expect(sign(attesting, key, context, parts)).rejects.toThrow('the core is gone');
    await expect(sign(other, key, context, parts)).resolves.toMatchObject({ reason: 'equivocation' });
    await expect(sign(attesting, key, context, parts)).rejects.toThrow('the core is gone');
  });

  it('of a bid needs signing.builder', async () => {
    const bid = request('EXECUTION_PAYLOAD_BID');
    const parts = dependencies(async (root) => root);
    const refused = await sign(bid, key, context, parts);
    expect(refused).toMatchObject({
      reason: 'unsupported_operation',
      hint: expect.stringContaining('signing.builder'),
    });
    expect(await sign(bid, key, context, { ...parts, builder: true })).toMatchObject({ kind: 'signed' });
  });
});
