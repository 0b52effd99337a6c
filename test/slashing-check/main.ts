// `make check-slashing MESSAGES=…`: half of the messages go to random worlds of fleets in one process
// (test/support/fleet: failovers, jumps, clocks, tables that come back, copies), half to real processes over the three
// real stores (programs.ts). Lanes of both halves go on at once, because most of their time they wait. A checker that
// knows only what was released finds no slashable pair, or this ends with 1.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Half, Share, ShareResult } from './lane.ts';

const HALVES = { programs: 50_000, worlds: 3_000 } as const;
/** From so many messages on, two lanes for each half. */
const MANY_MESSAGES = 50_000;
const [messagesText, seedText] = process.argv.slice(2);
const messages = Number(messagesText || 20_000);
const firstSeed = Number(seedText || 1);
if (!(messages >= 2) || !Number.isSafeInteger(firstSeed))
  throw new Error('MESSAGES is a number from 2, SEED an integer');

/** What a module is without its types is kept: signers that are started again begin sooner. */
const modules = mkdtempSync(join(tmpdir(), 'strongroom-modules-'));
const started = performance.now();
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const inLine = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
const add = (sum: Map<string, number>, counts: ShareResult['events']): void => {
  for (const [name, count] of counts) sum.set(name, (sum.get(name) ?? 0) + count);
};

async function check(half: Half, count: number): Promise<string[]> {
  const totals = { seed: firstSeed, begun: 0, asked: 0, outcomes: new Map<string, number>(), events: new Map() };
  const faults: string[] = [];
  const next = (): Share => {
    const share = { seed: totals.seed, messages: Math.min(HALVES[half], count - totals.begun) };
    totals.seed += 1;
    totals.begun += share.messages;
    return share;
  };
  const inOneLane = async (): Promise<void> => {
    const lane = fork(join(import.meta.dirname, 'lane.ts'), [half], {
      env: { ...process.env, NODE_COMPILE_CACHE: modules },
    });
    while (totals.begun < count && faults.length === 0) {
      const share = next();
      const result = await resultOf(lane, share);
      totals.asked += result.asked;
      add(totals.outcomes, result.outcomes);
      add(totals.events, result.events);
      faults.push(...result.faults.map((fault) => `${half}, seed ${share.seed}: ${fault}`));
      const seconds = Math.round((performance.now() - started) / 1000);
      const far = `${totals.asked} of ${count} messages, ${seconds} s, ${faults.length} faults`;
      say(`${half}: seed ${share.seed} ended; so far ${far}`);
      if (half === 'programs') say(`${half}: so far ${inLine(totals.outcomes)}; ${inLine(totals.events)}`);
    }
    const ended = once(lane, 'exit');
    lane.disconnect();
    await ended;
  };
  await Promise.all(Array.from({ length: messages < MANY_MESSAGES ? 1 : 2 }, inOneLane));
  say(`${half}: ${totals.asked} messages; ${inLine(totals.outcomes)}`);
  say(`${half}: ${inLine(totals.events)}`);
  return faults;
}

function resultOf(lane: ChildProcess, share: Share): Promise<ShareResult> {
  return new Promise((resolve, reject) => {
    const fail = (code: number | null, signal: string | null) =>
      reject(new Error(`the lane of seed ${share.seed} ended with ${code ?? signal}`));
    lane.once('exit', fail);
    lane.once('message', (result: ShareResult) => {
      lane.off('exit', fail);
      resolve(result);
    });
    lane.send(share);
  });
}

process.once('exit', () => rmSync(modules, { recursive: true, force: true }));
const halves = [check('programs', Math.ceil(messages / 2)), check('worlds', Math.floor(messages / 2))];
const faults = (await Promise.all(halves)).flat();
for (const fault of faults) say(fault);
say(faults.length === 0 ? 'nothing slashable, nothing of another network' : `${faults.length} FAULTS`);
process.exit(faults.length === 0 ? 0 : 1);
