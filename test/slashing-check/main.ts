// `make check-slashing MESSAGES=…`: half of the messages go to random worlds of fleets in this process
// (test/support/fleet: failovers, jumps, clocks, tables that come back, copies), half to real processes over the three
// real stores (programs.ts). A checker that knows only what was released finds no slashable pair, or this ends with 1.

import { startDynamoDB } from '../../tools/rehearsal/dynamodb.ts';
import { FleetCluster } from '../support/fleet/cluster.ts';
import { runWorld } from '../support/fleet/run.ts';
import { openClient } from '../support/fleet/sites.ts';
import { startPostgres } from '../support/postgres.ts';
import { runPrograms } from './programs.ts';

const MESSAGES_OF_A_WORLD = 3_000;
const MESSAGES_OF_A_PROGRAM_RUN = 50_000;
const [messagesText, seedText] = process.argv.slice(2);
const messages = Number(messagesText || 20_000);
const firstSeed = Number(seedText || 1);
if (!(messages >= 2) || !Number.isSafeInteger(firstSeed))
  throw new Error('MESSAGES is a number from 2, SEED an integer');

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const inLine = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
const add = (sum: Map<string, number>, counts: ReadonlyMap<string, number>): void => {
  for (const [name, count] of counts) sum.set(name, (sum.get(name) ?? 0) + count);
};

const dynamodb = await startDynamoDB();
const faults: string[] = [];
const totals = { asked: 0, moves: 0, outcomes: new Map<string, number>() };

async function checkWorlds(count: number): Promise<void> {
  const cluster = await FleetCluster.start();
  const client = openClient(dynamodb);
  const started = performance.now();
  for (let seed = firstSeed; totals.asked < count && faults.length === 0; seed++) {
    const result = await runWorld(
      { seed, messages: Math.min(MESSAGES_OF_A_WORLD, count - totals.asked) },
      { server: dynamodb, client, cluster },
    );
    totals.asked += result.asked;
    totals.moves += result.moves;
    add(totals.outcomes, result.outcomes);
    faults.push(...result.violations);
    const seconds = Math.round((performance.now() - started) / 1000);
    say(`worlds: seed ${seed}, ${totals.asked} of ${count} messages, ${seconds} s, ${faults.length} slashable pairs`);
  }
  client.destroy();
  await cluster.close();
  say(`worlds: ${totals.asked} messages, ${totals.moves} moves; ${inLine(totals.outcomes)}`);
}

async function checkPrograms(count: number): Promise<void> {
  const postgres = await startPostgres();
  const started = performance.now();
  let last = started;
  let before = 0;
  for (let seed = firstSeed; before < count && faults.length === 0; seed++) {
    const result = await runPrograms(
      {
        seed,
        messages: Math.min(MESSAGES_OF_A_PROGRAM_RUN, count - before),
        onProgress(asked, signed) {
          if (performance.now() - last < 10_000) return;
          last = performance.now();
          const seconds = Math.round((last - started) / 1000);
          say(`programs: seed ${seed}, ${before + asked} of ${count} messages, ${signed} signed, ${seconds} s`);
        },
      },
      { postgres, dynamodb },
    );
    before += result.asked;
    faults.push(...result.trespasses, ...result.pairs.map(({ offence, one }) => `${offence} of ${one.publicKey}`));
    say(`programs: seed ${seed}, ${result.asked} messages; ${inLine(result.outcomes)}`);
    say(`programs: seed ${seed}: ${inLine(result.events)}`);
    if ((result.outcomes.get('200') ?? 0) < result.asked / 100) faults.push('next to nothing was signed');
  }
  await postgres.close();
}

await checkPrograms(Math.ceil(messages / 2));
await checkWorlds(Math.floor(messages / 2));
await dynamodb.close();
for (const fault of faults) say(fault);
say(faults.length === 0 ? 'nothing slashable, nothing of another network' : `${faults.length} FAULTS`);
process.exit(faults.length === 0 ? 0 : 1);
