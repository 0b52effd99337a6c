// What may never happen, tried on the real program: two conflicting signatures, by concurrency, by kill -9, by a full
// disk.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, block, rootOf, signCall } from '../support/requests.ts';
import { sized } from '../support/scale.ts';
import { slashablePairs } from '../support/slashing-checker.ts';

const ROUNDS = sized(5, 12);
const RACE_ROUNDS = sized(3, 10);
const CONTENDERS = 64;

interface SignedVote {
  readonly publicKey: string;
  readonly source: number;
  readonly target: number;
  readonly data: string;
}

/** Knows nothing of the implementation: only what was signed. */
function slashableAmong(votes: readonly SignedVote[]): unknown[] {
  return slashablePairs(
    votes.map(({ publicKey, source, target, data }) => ({
      kind: 'attestation',
      publicKey,
      sourceEpoch: source,
      targetEpoch: target,
      signingRoot: Buffer.from(data.slice(2), 'hex'),
    })),
  );
}

describe('64 concurrent conflicting requests for one key', () => {
  const deployment = deploy(1);
  const publicKey = deployment.keys[0]?.publicKey ?? '';
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());

  it('votes for one target: exactly one signature, on every round', async () => {
    for (let round = 0; round < RACE_ROUNDS; round += 1) {
      const votes = Array.from({ length: CONTENDERS }, (_, head) =>
        signCall(signer.url, publicKey, attestation({ source: 10 + round, target: 11 + round, head: rootOf(head) })),
      );
      const statuses = (await Promise.all(votes)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.filter((status) => status === 412)).toHaveLength(CONTENDERS - 1);
    }
  });

  it('blocks of one slot: exactly one signature, on every round', async () => {
    for (let round = 0; round < RACE_ROUNDS; round += 1) {
      const blocks = Array.from({ length: CONTENDERS }, (_, body) =>
        signCall(signer.url, publicKey, block({ slot: 100 + round, body: rootOf(body) })),
      );
      const statuses = (await Promise.all(blocks)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    }
  });

  it('votes that surround each other: those signed never do', async () => {
    const votes = Array.from({ length: CONTENDERS }, (_, n) => ({ source: 1000 + n, target: 1200 - n }));
    const signed: SignedVote[] = [];
    await Promise.all(
      votes.map(async (vote) => {
        const { status } = await signCall(signer.url, publicKey, attestation(vote));
        if (status === 200) signed.push({ publicKey, ...vote, data: '' });
      }),
    );
    expect(signed).toHaveLength(1);
    expect(slashableAmong(signed)).toEqual([]);
  });
});

describe('kill -9 in the middle of a burst', () => {
  it(`${ROUNDS} rounds: nothing slashable is ever signed, before or after`, async () => {
    // The record is the subject: a jump after each kill would refuse all that is asked.
    const deployment = deploy(8, { anti_slashing: { jump_after_unclean_end: false } });
    const signed: SignedVote[] = [];
    let killedInFlight = 0;
    let answered = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const signer = await deployment.start();
      const { lost, got } = await burstThenKill(signer, deployment.keys, round, signed);
      killedInFlight += lost;
      answered += got;
    }
    const last = await deployment.start();
    await conflictWithEverything(last, signed);
    await last.stop();
    expect(slashableAmong(signed)).toEqual([]);
    // The rounds were worth something: requests were under way when the process died, and others were answered.
    expect(killedInFlight).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(0);
  });
});

/**
 * Many votes at once, some conflicting with each other and with those of the round before; the process dies among them.
 */
async function burstThenKill(
  signer: RunningSigner,
  keys: readonly { readonly publicKey: string }[],
  round: number,
  signed: SignedVote[],
): Promise<{ lost: number; got: number }> {
  let [lost, got] = [0, 0];
  const killAfter = 20 + round * 7;
  const requests = keys.flatMap(({ publicKey }) =>
    [0, 1, 2].flatMap((step) =>
      // Targets overlap with the next round's, heads differ by round: what this round recorded must stop the next.
      ['a', 'b', 'c'].map(async (variant) => {
        const vote = { source: 50 + round * 2 + step, target: 52 + round * 2 + step };
        const head = rootOf(round * 16 + variant.charCodeAt(0) - 96);
        try {
          const { status } = await signCall(signer.url, publicKey, attestation({ ...vote, head }));
          got += 1;
          if (status === 200) signed.push({ publicKey, ...vote, data: head });
          if (got === killAfter) await signer.kill();
        } catch {
          lost += 1;
        }
      }),
    ),
  );
  await Promise.all(requests);
  await signer.kill();
  return { lost, got };
}

async function conflictWithEverything(signer: RunningSigner, signed: SignedVote[]): Promise<void> {
  for (const vote of [...signed]) {
    const head = rootOf(0xee);
    const answer = await signCall(signer.url, vote.publicKey, attestation({ ...vote, head }));
    if (answer.status === 200) signed.push({ ...vote, data: head });
  }
}
