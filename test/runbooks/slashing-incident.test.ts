// docs/runbooks/slashing-incident.md, from the alert to its end: a second client that has the key, a validator that was
// slashed, a client that lags, a key that had left. The slashable message is refused to the last.

import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InterchangeFile } from '../support/interchange.ts';
import { tellsOneStory } from '../support/skip.ts';
import { after } from './follow.ts';
import type { Block } from './page.ts';
import { rehearseSection } from './rehearse.ts';
import { presentEpoch } from './service-world.ts';
import { type StatefulWorld, startStatefulRunbooks } from './stateful-world.ts';

const PAGE = 'docs/runbooks/slashing-incident.md';
let world: StatefulWorld;
let beacon: Server;
/** One for all: an epoch may begin between two tests. */
const now = presentEpoch();
/** A signer that took long to come back has waited and jumped: what is slashable then lies below its marks, too. */
const REFUSED_VOTE = /^(?:double_vote|target_below_low_water_mark)$/;
const REFUSED_BLOCK = /^(?:double_block|block_below_low_water_mark)$/;
const keyAt = (index: number): string => world.keys[index] ?? '';

/** A beacon node that says of every validator that it was slashed. */
async function startBeaconNode(address: string): Promise<Server> {
  const server = createServer(({ url = '' }, response) => {
    const data = url.includes('/validators/')
      ? { validator: { slashed: true } }
      : {
          message: { body: { proposer_slashings: [], attester_slashings: [{ attestation_1: {}, attestation_2: {} }] } },
        };
    response.end(JSON.stringify({ data }));
  });
  await new Promise<void>((resolve) => server.listen(5052, address, resolve));
  return server;
}

tellsOneStory();

beforeAll(async () => {
  world = await startStatefulRunbooks();
  beacon = await startBeaconNode(world.address);
});
afterAll(async () => {
  beacon?.close();
  await world?.close();
});

type Also = (block: Block) => Promise<void>;

const follow = (section: string, { also, ...values }: { also?: Also; TARGET?: string; INTRUDER?: string } = {}) => {
  const own = { KEY: keyAt(0), TARGET: '0', INTRUDER: '', BEACON: `http://${world.address}:5052`, BLOCK: '1' };
  const reader = { ...world, values: { ...world.values, ...own, ...values } };
  return rehearseSection(PAGE, section, reader, { before: after(world, also) });
};

it('#refused, #retired: a second client has the key; it goes, and the key signs again', async () => {
  const intruder = await world.createToken({ policies: ['validator-client'] });
  expect(await world.vote(keyAt(0), now - 1)).toBe('signed');
  const rival = () => world.vote(keyAt(0), now - 1, { head: 9, token: intruder.token });
  expect(await rival()).toBe('double_vote');

  await follow('refused', { TARGET: String(now - 1), INTRUDER: intruder.accessor });
  expect(await rival()).toBe('invalid_token');
  expect(await world.vote(keyAt(0), now)).toBe('key_retired');
  await world.signs(keyAt(1));

  await follow('retired');
  await world.signs(keyAt(0));
  expect(await world.vote(keyAt(0), now - 1, { head: 9 })).toMatch(REFUSED_VOTE);
});

it('#slashed: nothing signs until it is explained; then all but the slashed key do', async () => {
  const sealed: string[] = [];
  const slot = await world.signs(keyAt(1));
  await follow('slashed', {
    also: async ({ commands }) => {
      if (commands === 'systemctl stop strongroom\n') sealed.push(await world.vote(keyAt(1), now));
    },
  });
  expect(sealed).toEqual(['sealed']);
  const records = JSON.parse(readFileSync(`${world.store}.incident.json`, 'utf8')) as InterchangeFile;
  const kept = records.data.find(({ pubkey }) => pubkey === keyAt(0))?.signed_attestations ?? [];
  // The vote, or the mark of a jump above it.
  expect(Math.max(...kept.map(({ target_epoch }) => Number(target_epoch)))).toBeGreaterThanOrEqual(now - 1);
  expect(await world.vote(keyAt(0), now)).toBe('key_retired');
  expect(await world.propose(keyAt(1), slot, { body: 9 })).toMatch(REFUSED_BLOCK);
  await world.signs(keyAt(1));
});

it('#below-marks: a client asks for old duties, until it is mended', async () => {
  expect(await world.vote(keyAt(1), now - 9)).toMatch(/_below_low_water_mark$/);
  const said = await follow('below-marks');
  expect(said.map(({ output }) => output).join()).toContain(`"target_epoch":${now - 9}`);
  await world.signs(keyAt(1));
});
