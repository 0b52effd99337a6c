// What an envelope of 1 MiB and one of 10 MiB cost: the CPU of the process, and the longest turn of the event loop, for
// the main thread signs meanwhile. The bar is that of the requirement: the main thread is not held for more than 20 ms
// at a time. Turns are counted in time on a core, on a signer of their own: the clock would count the work of others on
// a shared machine, and looking at each turn costs CPU.

import { setTimeout as sleep } from 'node:timers/promises';
import { publicNetwork } from '../../enclave/signing/networks.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { envelope, messageAt } from '../support/fork-messages.ts';
import { testKey } from '../support/requests.ts';
import { type Bar, type Core, median, row } from './bars.ts';
import { cpuSeconds, type LoadGenerator, startMeasured } from './measured-signer.ts';

const MIB = 1024 * 1024;
const SIZES_MIB = [1, 10];
const LONGEST_TURN: Bar = { accept: 20, good: 10, unit: ' ms' };
/** Linux counts process time in hundredths of a second, so that one envelope alone would be too few. */
const ENVELOPES_PER_ROUND = 8;
const WARM_UPS = 3;
/** Most transactions of mainnet have some hundred bytes. */
const TRANSACTION_BYTES = 600;

/** Keeps the longest turn of the main thread, in CPU, and tells it at SIGUSR2. */
const WATCH_TURNS = `
  import { isMainThread } from 'node:worker_threads';
  let last = process.threadCpuUsage(), longest = 0;
  function look() {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user - last.user + now.system - last.system);
    last = now;
    setImmediate(look);
  }
  if (isMainThread) {
    look();
    process.on('SIGUSR2', () => { process.stderr.write('longest turn ' + longest + ' us\\n'); longest = 0; });
  }`;

export async function measureEnvelopes(
  generator: LoadGenerator,
  core: Core,
  rounds: number,
  say: (line: string) => void,
): Promise<void> {
  const [plain, watched] = [await startEnvelopes(core), await startEnvelopes(core, WATCH_TURNS)];
  for (const size of SIZES_MIB) {
    const run = async ({ signer, envelopes }: Measured, count: number): Promise<number> => {
      const result = await generator.run(signer, { requests: envelopes.next(count, size * MIB), connections: 1 });
      if (result.statuses['200'] !== count) throw new Error(JSON.stringify(result.statuses));
      return result.p50;
    };
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) for (const one of [plain, watched]) await run(one, 1);
    const [cpu, p50, turns]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < rounds; round++) {
      const before = cpuSeconds(plain.signer);
      p50.push(await run(plain, ENVELOPES_PER_ROUND));
      cpu.push(((cpuSeconds(plain.signer) - before) / ENVELOPES_PER_ROUND) * 1000);
      await longestTurnMs(watched.signer); // begins a new reading
      await run(watched, 1);
      turns.push(await longestTurnMs(watched.signer));
    }
    say(`envelope of ${size} MiB`);
    say(row('CPU, ms', median(cpu)));
    say(row('p50, ms', median(p50)));
    say(row('longest turn of the main thread', median(turns), LONGEST_TURN));
  }
  await plain.signer.stop();
  await watched.signer.stop();
}

interface Measured {
  readonly signer: RunningSigner;
  readonly envelopes: Envelopes;
}

async function startEnvelopes(core: Core, script?: string): Promise<Measured> {
  const key = testKey(0);
  const options = script === undefined ? '' : `--import=data:text/javascript,${encodeURIComponent(script)}`;
  const how = { nodeOptions: options, keepsLog: true };
  const signer = await startMeasured([key], core, { network: 'sepolia' }, how);
  return { signer, envelopes: new Envelopes(key.publicKey) };
}

/** Each for a slot of its own, so that none is a repeat. */
class Envelopes {
  readonly #publicKey: string;
  #slot = 353_030 * 32;

  constructor(publicKey: string) {
    this.#publicKey = publicKey;
  }

  next(count: number, bytes: number): { publicKey: string; body: string }[] {
    return Array.from({ length: count }, () => ({ publicKey: this.#publicKey, body: this.#body(bytes) }));
  }

  #body(bytes: number): string {
    this.#slot += 1;
    const forks = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
    const message = messageAt(publicNetwork('sepolia'), 'EXECUTION_PAYLOAD_ENVELOPE', this.#slot, forks);
    const transaction = `0x${'5a'.repeat(TRANSACTION_BYTES)}`;
    const count = Math.floor((bytes - 4000) / (transaction.length + 3));
    const transactions = Array.from({ length: count }, () => transaction);
    return JSON.stringify({ ...message, execution_payload_envelope: envelope(this.#slot, transactions) });
  }
}

/** The longest since this was last asked. */
async function longestTurnMs(signer: RunningSigner): Promise<number> {
  const told = () => [...signer.output().matchAll(/longest turn (\d+) us/g)];
  const before = told().length;
  process.kill(signer.pid, 'SIGUSR2');
  while (told().length === before) await sleep(5);
  return Number(told().at(-1)?.[1]) / 1000;
}
