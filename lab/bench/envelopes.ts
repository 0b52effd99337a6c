// What an envelope of 1 MiB and one of 10 MiB cost: the CPU of the process, without and with rules for every value of
// an envelope (recipient, gas limit, builder index, a block of the key's own), and the longest turn of the event loop,
// for the main thread signs meanwhile. The bar is that of the requirement: the main thread is not held for more than
// 20 ms at a time. Turns are counted in time on a core, on a signer of their own: the clock would count the work of
// others on a shared machine, and looking at each turn costs CPU.

import { setTimeout as sleep } from 'node:timers/promises';
import { ssz } from '@lodestar/types';
import { encodeHex } from '../../common/formats/hex.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { envelope, messageAt } from '../../test/support/fork-messages.ts';
import { TEST_TOKEN, testKey } from '../../test/support/requests.ts';
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
  const plain = await startEnvelopes(core);
  const ruled = await startEnvelopes(core, { config: RULES });
  const watched = await startEnvelopes(core, { script: WATCH_TURNS, config: RULES });
  for (const size of SIZES_MIB) {
    const run = async ({ signer, envelopes }: Measured, count: number): Promise<Cost> => {
      const { blocks, requests } = envelopes.next(count, size * MIB);
      const ask = async (what: typeof requests) => {
        const result = await generator.run(signer, { requests: what, connections: 1 });
        if (result.statuses['200'] !== count) throw new Error(JSON.stringify(result.statuses));
        return result.p50;
      };
      await ask(blocks);
      const before = cpuSeconds(signer);
      const p50 = await ask(requests);
      return { p50, cpu: ((cpuSeconds(signer) - before) / count) * 1000 };
    };
    const all = [plain, ruled, watched];
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) for (const one of all) await run(one, 1);
    const [cpu, ruledCpu, p50, turns]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let round = 0; round < rounds; round++) {
      const without = await run(plain, ENVELOPES_PER_ROUND);
      cpu.push(without.cpu);
      p50.push(without.p50);
      ruledCpu.push((await run(ruled, ENVELOPES_PER_ROUND)).cpu);
      await longestTurnMs(watched.signer); // begins a new reading
      await run(watched, 1);
      turns.push(await longestTurnMs(watched.signer));
    }
    say(`envelope of ${size} MiB`);
    say(row('CPU, ms', median(cpu)));
    say(row('CPU with rules, ms', median(ruledCpu)));
    say(row('CPU with rules, ms a MiB', median(ruledCpu) / size));
    say(row('p50, ms', median(p50)));
    say(row('longest turn of the main thread', median(turns), LONGEST_TURN));
  }
  for (const { signer } of [plain, ruled, watched]) await signer.stop();
}

const ALLOW = { effect: 'allow', scopes: ['sign'] } as const;
/** A rule that every value of an envelope has to meet. */
const RULES = {
  static_auth: {
    policies: [
      {
        name: 'proposer',
        rules: [
          { ...ALLOW, operations: ['BLOCK_V2'] },
          {
            ...ALLOW,
            fee_recipients: [`0x${'33'.repeat(20)}`],
            max_gas_limit: 60_000_000,
            builder_indices: ['self'],
            only_for_own_blocks: true,
          },
        ],
      },
    ],
    tokens: [{ secret: TEST_TOKEN, policies: ['proposer'] }],
  },
};

/** Milliseconds of one envelope. */
interface Cost {
  readonly p50: number;
  readonly cpu: number;
}

interface Measured {
  readonly signer: RunningSigner;
  readonly envelopes: Envelopes;
}

async function startEnvelopes(
  core: Core,
  { script, config = {} }: { readonly script?: string; readonly config?: object } = {},
): Promise<Measured> {
  const key = testKey(0);
  const options = script === undefined ? '' : `--import=data:text/javascript,${encodeURIComponent(script)}`;
  const how = { nodeOptions: options, keepsLog: true };
  const signer = await startMeasured([key], core, { network: 'sepolia', ...config }, how);
  return { signer, envelopes: new Envelopes(key.publicKey) };
}

interface Asked {
  readonly publicKey: string;
  readonly body: string;
}

/** Each for a slot of its own, so that none is a repeat, and for a block that the key signs first. */
class Envelopes {
  readonly #publicKey: string;
  #slot = 353_030 * 32;

  constructor(publicKey: string) {
    this.#publicKey = publicKey;
  }

  next(count: number, bytes: number): { readonly blocks: readonly Asked[]; readonly requests: readonly Asked[] } {
    const made = Array.from({ length: count }, () => this.#bodies(bytes));
    const asked = (body: object): Asked => ({ publicKey: this.#publicKey, body: JSON.stringify(body) });
    return { blocks: made.map(({ block }) => asked(block)), requests: made.map((one) => asked(one.envelope)) };
  }

  #bodies(bytes: number): { readonly block: object; readonly envelope: object } {
    this.#slot += 1;
    const forks = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
    const block = messageAt(publicNetwork('sepolia'), 'BLOCK_V2', this.#slot, forks);
    const { block_header: header } = block['beacon_block'] as { block_header: object };
    const type = ssz.phase0.BeaconBlockHeader;
    const beacon_block_root = encodeHex(type.hashTreeRoot(type.fromJson(header)));
    const message = messageAt(publicNetwork('sepolia'), 'EXECUTION_PAYLOAD_ENVELOPE', this.#slot, forks);
    const transaction = `0x${'5a'.repeat(TRANSACTION_BYTES)}`;
    const count = Math.floor((bytes - 4000) / (transaction.length + 3));
    const transactions = Array.from({ length: count }, () => transaction);
    const whole = { ...envelope(this.#slot, transactions), beacon_block_root };
    return { block, envelope: { ...message, execution_payload_envelope: whole } };
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
