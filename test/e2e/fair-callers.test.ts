// Hundreds of parallel requests of one token, and now and then one of another token: the other's does not wait behind
// all of them. Compared is how many answers the first one gets meanwhile, which does not depend on how fast the machine
// is. Without turns the queue of the signing core makes every probe wait for nearly all of them; with turns a busy
// machine can do so to some probes (their bytes are read late), so the lower quartile is judged. Each message differs:
// equal ones are signed so fast that no queue grows. Alone, the first token gets all its answers.

import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { randaoReveal, TEST_TOKEN } from '../support/requests.ts';

const OTHER = 'sr_client_TEST_TOKEN_of_the_other_validator_client_01';
const PARALLEL = 600;
const PROBES = 15;
const ALL_OF_A_SLOT = 3900;

const deployment = deploy(50, {
  server: { request_timeout_seconds: 600 }, // on a busy machine all of a slot take long
  static_auth: {
    policies: [FULL_ACCESS],
    tokens: [
      { secret: TEST_TOKEN, policies: ['full'] },
      { secret: OTHER, policies: ['full'] },
    ],
  },
});
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start({ keepsLog: false });
});
afterAll(() => signer.stop());

let epoch = 3;

function sign(agent: Agent, token: string, number: number): Promise<number | undefined> {
  epoch += 1;
  const body = JSON.stringify(randaoReveal(epoch));
  const key = deployment.keys[number % deployment.keys.length]?.publicKey ?? '';
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { authorization: `Bearer ${token}`, 'content-length': Buffer.byteLength(body) };
  request(`${signer.url}/api/v1/eth2/sign/${key}`, { agent, method: 'POST', headers }, (response) => {
    response.resume().on('end', () => resolve(response.statusCode));
  })
    .on('error', reject)
    .end(body);
  return promise;
}

it('one request of another token waits for a part of those that one token has waiting, not for all of them', async () => {
  const agents = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: PARALLEL })) as [Agent, Agent];
  const flooding = { answered: 0, isOver: false };
  const statuses = new Set<number | undefined>();
  const again = async (number: number): Promise<void> => {
    while (!flooding.isOver) {
      statuses.add(await sign(agents[0], TEST_TOKEN, number));
      flooding.answered += 1;
    }
  };
  const flood = Array.from({ length: PARALLEL }, (_, number) => again(number));
  await expect.poll(() => flooding.answered).toBeGreaterThan(2 * PARALLEL);
  const meanwhile: number[] = [];
  for (let probe = 0; probe < PROBES; probe += 1) {
    const before = flooding.answered;
    statuses.add(await sign(agents[1], OTHER, probe));
    meanwhile.push(flooding.answered - before);
  }
  flooding.isOver = true;
  await Promise.all(flood);
  for (const agent of agents) agent.destroy();
  expect(statuses).toEqual(new Set([200]));
  const lowerQuartile = meanwhile.toSorted((one, another) => one - another)[PROBES >> 2];
  expect(lowerQuartile).toBeLessThan(PARALLEL / 2);
});

it('one token alone gets all the answers of a slot at once', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: ALL_OF_A_SLOT });
  const all = await Promise.all(Array.from({ length: ALL_OF_A_SLOT }, (_, number) => sign(agent, TEST_TOKEN, number)));
  agent.destroy();
  expect(new Set(all)).toEqual(new Set([200]));
});
