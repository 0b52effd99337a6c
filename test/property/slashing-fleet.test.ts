// Random histories of a world of signers, stores and keys, judged by a checker that knows every signature that was
// ever released (support/fleet/): keys move in every documented way, deletes come under fire, stores lose commits,
// signers freeze and die, bindings are taken over, PostgreSQL fails over to a standby that lags or comes back from a
// copy of its files, a file gets a second name or its folder is renamed back, clients ask for batches beside single
// messages, tables come back under their replicas, and the parent of an enclave rolls its tables back. A PATCH comes
// beside or long after a DELETE, imports fail half-way, clocks step, the row of the fleet's store comes back, and a
// copy of a store starts beside it. No two signatures of a key are slashable. And that the model has teeth: without
// any one of the protections, the seeds named here yield a slashable pair.
//
// TEST_SCALE=20 asks 120,000 messages with everything on. With TMPDIR on a memory file system and NODE_COMPILE_CACHE
// set, a message costs about 2 ms of a processor. TEST_SEED: the first seed; each world of 3,000 messages has the next
// one. A seed decides the steps; what meets what within a step is the machine's, so a seed that finds something may
// have to be run more than once.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { FleetCluster } from '../support/fleet/cluster.ts';
import type { Missing } from '../support/fleet/gate.ts';
import { runWorld } from '../support/fleet/run.ts';
import { openClient } from '../support/fleet/sites.ts';
import { IS_WHOLE, sized, someOf, testSeed } from '../support/scale.ts';

const MESSAGES = sized(3_000, 6_000);
const FIRST_SEED = testSeed(1);
const MESSAGES_OF_A_WORLD = 3_000;
const MESSAGES_WITHOUT_A_PROTECTION = 12_000;
const SEEDS = Array.from({ length: Math.ceil(MESSAGES / MESSAGES_OF_A_WORLD) }, (_, index) => FIRST_SEED + index);
/** Only so that a world that hangs is named: a message takes milliseconds, and twenty times more on a busy machine. */
const timeoutMs = (messages: number): number => 900_000 + 200 * messages;

/**
 * For each protection, seeds that find something without it: the first did, and the others are of the same emphasis.
 * In this order the small size has three that are found soon.
 */
const TEETH: Readonly<Record<Missing, readonly number[]>> = {
  binding: [3, 10, 17],
  minimal_merging: [0, 7, 14, 21],
  retirement: [0, 7, 14, 21],
  jump: [2, 1, 3, 5],
  local_floor: [2, 9, 16, 23],
  failover_jump: [18, 25, 11, 4, 32, 39],
  restored_jump: [18, 39, 4, 11],
  memory: [34, 62, 41, 55, 69, 13],
  incarnation: [38, 31, 10, 17, 3, 24],
  closed_mark: [12, 5, 19, 26],
  end_time: [12, 5, 19, 26, 33],
  renewal: [13, 6, 20, 27, 34],
};

const MOST_SEEDS = Math.max(...Object.values(TEETH).map(({ length }) => length));

let server: DynamoDBServer;
let client: DynamoDBClient;
let cluster: FleetCluster;
beforeAll(async () => {
  server = await startDynamoDB();
  cluster = await FleetCluster.start();
  client = openClient(server);
});
afterAll(async () => {
  client.destroy();
  await server.close();
  await cluster.close();
});

describe('a world of fleets', () => {
  it(
    `${MESSAGES} messages, seeds ${SEEDS.at(0)} to ${SEEDS.at(-1)}: nothing slashable`,
    async () => {
      const outcomes = new Map<string, number>();
      let [asked, moves] = [0, 0];
      for (const seed of SEEDS) {
        const messages = Math.min(MESSAGES_OF_A_WORLD, MESSAGES - asked);
        const result = await runWorld({ seed, messages }, { server, client, cluster });
        expect(result.violations.join('\n\n')).toBe('');
        for (const [outcome, count] of result.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
        asked += result.asked;
        moves += result.moves;
        if (asked >= MESSAGES) break;
      }
      // The run would prove nothing if little was signed, or little refused, or no key moved.
      expect(outcomes.get('signed')).toBeGreaterThan(asked / 30);
      expect(outcomes.get('signed in batches')).toBeGreaterThan(asked / 1_000);
      for (const reason of ['double_vote', 'double_block', 'slashing_unbound', 'unknown_key', 'ahead_of_clock']) {
        expect([reason, (outcomes.get(reason) ?? 0) > asked / 1_000]).toEqual([reason, true]);
      }
      expect(moves).toBeGreaterThan(asked / 2_000);
      if (IS_WHOLE) console.info(asked, moves, Object.fromEntries(outcomes));
    },
    timeoutMs(MESSAGES),
  );
});

describe('without a protection', () => {
  it.each(someOf(Object.entries(TEETH) as [Missing, readonly number[]][], 3))(
    'without %s some seed of %j yields a slashable pair',
    async (missing, seeds) => {
      for (const seed of seeds) {
        const { violations } = await runWorld(
          { seed, messages: MESSAGES_WITHOUT_A_PROTECTION, missing },
          { server, client, cluster },
        );
        if (violations.length > 0) return;
      }
      expect.unreachable(`no seed noticed that ${missing} is missing`);
    },
    timeoutMs(MOST_SEEDS * MESSAGES_WITHOUT_A_PROTECTION),
  );
});
