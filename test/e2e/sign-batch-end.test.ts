// Batches that do not end: by kill -9, by a client that goes away, by a signer that is told to stop.

import { describe, expect, it } from 'vitest';
import { deploy } from '../support/deployment.ts';
import { type Answer, attestation, batchCall, randaoReveal, rootOf } from '../support/requests.ts';
import { sized } from '../support/scale.ts';
import { outcomesOf, resultsOf } from './batch-requests.ts';

describe('a batch that does not end', () => {
  it('with kill -9: what a key may have signed, it contradicts never', async () => {
    // The record is the subject: a jump after each kill would refuse all that is asked.
    const deployment = deploy(200, { anti_slashing: { jump_after_unclean_end: false } });
    const some = deployment.keys.map(({ publicKey }) => publicKey);
    let lost = 0;
    const signed = new Map<string, string>();
    for (let round = 0; round < sized(2, 6); round++) {
      const vote = { source: 50 + round, target: 51 + round };
      const dying = await deployment.start();
      // A batch that was answered says that the next ones are under way.
      await batchCall(dying.url, some.slice(0, 1), randaoReveal());
      const someSigned = Promise.withResolvers<void>();
      const batches = [1, 2, 3, 4].map((head) =>
        batchCall(dying.url, some.slice((head % 2) * 50), attestation({ ...vote, head: rootOf(head) })).then(
          (answer) => {
            for (const { identifier, signature } of resultsOf(answer)) {
              if (signature === undefined) continue;
              expect(signed.has(`${identifier} ${vote.target}`)).toBe(false);
              signed.set(`${identifier} ${vote.target}`, signature);
              someSigned.resolve();
            }
          },
          () => {
            lost += 1;
          },
        ),
      );
      // The first answer may be that of a batch whose keys all vote for another head.
      if (round % 2 === 0) await someSigned.promise;
      else await new Promise((resolve) => setImmediate(resolve));
      await dying.kill();
      await Promise.all(batches);
      const next = await deployment.start();
      const results = resultsOf(await batchCall(next.url, some, attestation({ ...vote, head: rootOf(0xee) })));
      for (const { identifier, signature } of results) {
        if (signed.has(`${identifier} ${vote.target}`)) expect(signature).toBeUndefined();
      }
      await next.stop();
    }
    expect(lost).toBeGreaterThan(0);
    expect(signed.size).toBeGreaterThan(0);
  });

  it('because its client goes away: nothing is held afterwards', async () => {
    const deployment = deploy(200, { signing: { queue_buffer_size: 200, max_concurrent_jobs: 4 } });
    const signer = await deployment.start();
    const some = deployment.keys.map(({ publicKey }) => publicKey);
    for (let round = 0; round < 5; round++) {
      const client = new AbortController();
      const headers = { 'x-request-id': `gone-${round}` };
      const batch = batchCall(signer.url, some, attestation({ source: round, target: 1 + round }), {
        signal: client.signal,
        headers,
      });
      const other = batchCall(signer.url, some.slice(0, 1), randaoReveal());
      await Promise.race([batch, other]);
      client.abort();
      await Promise.allSettled([batch, other]);
      await signer.logged('request', { request_id: `gone-${round}` });
    }
    expect(signer.log.some(({ msg, reason }) => msg === 'request' && reason === 'client_closed')).toBe(true);
    const last = attestation({ source: 100, target: 101 });
    const wholeQueue = async (): Promise<Answer> => {
      const answer = await batchCall(signer.url, some, last);
      return answer.status === 503 ? wholeQueue() : answer; // what is under way for those who left ends first
    };
    expect(new Set(outcomesOf(await wholeQueue()))).toEqual(new Set(['signed']));
    expect(await signer.stop()).toBe(0);
  });

  it('because the signer is told to stop: it is answered, each key for itself', async () => {
    const deployment = deploy(200);
    const signer = await deployment.start();
    const some = deployment.keys.map(({ publicKey }) => publicKey);
    const batch = batchCall(signer.url, some, attestation({ source: 1, target: 2 }));
    await batchCall(signer.url, some.slice(0, 1), randaoReveal());
    const stopped = signer.stop();
    expect(new Set(outcomesOf(await batch))).toEqual(new Set(['signed']));
    expect(await stopped).toBe(0);
  });
});
