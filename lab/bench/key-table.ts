// What a large key table costs: time until every key signs, memory a key, refreshes that find nothing and one changed
// key, and how long the main thread was ever busy at once. The table server is the stand-in on this machine, which
// shares its cores. Run: bin/pinned-node lab/bench/key-table.ts [--keys N] [--core portable] [--json]

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { systemClock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { dynamoDBClientOptions, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { createDynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { TableFreshness } from '../../signer/keys/table/freshness.ts';
import { KeyCipher } from '../../signer/keys/table/key-cipher.ts';
import { TableLoader } from '../../signer/keys/table/loader.ts';
import { openKeyTable } from '../../signer/keys/table/table.ts';
import { newTableKey } from '../../test/support/key-table.ts';

const MOST_KEYS = 1_000_000; // docs/specification/limits.md
const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '100000' },
    core: { type: 'string' },
    /** Ends after the first load, with its figures as the last line. */
    json: { type: 'boolean', default: false },
    /** The process that loads, which the one that writes starts: so that memory is that of a signer. */
    endpoint: { type: 'string' },
    'master-key': { type: 'string', default: randomBytes(32).toString('hex') },
  },
});
/** What a first load took. */
export interface FirstLoad {
  readonly seconds: number;
  /** CPU time of the whole process. */
  readonly cpuSeconds: number;
  readonly mainCpuSeconds: number;
  /** CPU time of the longest turn. */
  readonly longestTurnMs: number;
}

const keyCount = Number(values.keys);
const CREATED_AT_ONCE = 2_000;
const REFRESHES = 20;
const log: Log = { debug() {}, info() {}, warn: console.warn, error: console.error };

if (values.endpoint === undefined) await writeTable();
else await loadTable(values.endpoint);

async function writeTable(): Promise<void> {
  const server = await startDynamoDB();
  await server.createTable(keyTableDefinition('keys'));
  const parts = partsOf(server.endpoint);
  const writer = openKeyTable(parts);
  await measure('rows written', async () => {
    for (let from = 0; from < keyCount; from += CREATED_AT_ONCE) {
      const count = Math.min(CREATED_AT_ONCE, keyCount - from);
      // As long as that of a generated key: 24 words, encrypted to one recipient, armored.
      const backup = 'x'.repeat(560);
      await writer.create(Array.from({ length: count }, (_, index) => ({ ...newTableKey(from + index), backup })));
    }
  });
  parts.client.destroy();
  const core = values.core === undefined ? [] : ['--core', values.core];
  const json = values.json ? ['--json'] : [];
  const options = [
    ...json,
    '--keys',
    values.keys,
    '--endpoint',
    server.endpoint,
    '--master-key',
    values['master-key'],
    ...core,
  ];
  spawnSync(process.execPath, ['--expose-gc', fileURLToPath(import.meta.url), ...options], { stdio: 'inherit' });
  await server.close();
}

async function loadTable(endpoint: string): Promise<void> {
  const core = await openBlsCore({ log, prefer: values.core === 'portable' ? 'portable' : 'native' });
  console.log(`${core.kind} core, ${availableParallelism()} cores, Node ${process.version}, ${keyCount} keys`);
  const parts = partsOf(endpoint);
  const store = new KeyStore({}, { vault: core, clock: systemClock });
  const options = { statusFilter: ['active'], refreshIntervalSeconds: 0, maxConcurrentReads: 16 } as const;
  const loader = new TableLoader(options, { ...parts, store });
  const before = memory();
  const first = await measure('first load, until the list is answered', async () => {
    await loader.load();
    store.completeFirstLoad();
    if (store.publicKeys().length !== keyCount) throw new Error('keys are missing');
  });
  if (values.json) {
    await loader.stop();
    parts.client.destroy();
    await core.close();
    console.log(JSON.stringify(first));
    return;
  }
  const after = memory();
  const each = (kind: 'rss' | 'heap') => ((after[kind] - before[kind]) / keyCount).toFixed(0);
  console.log(`memory a key: ${each('rss')} bytes resident, ${each('heap')} of them on the heap`);
  await measure(`${REFRESHES} refreshes that find nothing`, async () => {
    for (let i = 0; i < REFRESHES; i++) await loader.refresh();
  });
  await measure('one refresh that finds one key more', async () => {
    await openKeyTable(parts).create([newTableKey(keyCount)]);
    await loader.refresh();
    const expected = Math.min(keyCount + 1, MOST_KEYS); // one more than a signer takes is refused
    if (store.publicKeys().length !== expected) throw new Error('the new key is missing');
  });
  await loader.stop();
  parts.client.destroy();
  await core.close();
}

function partsOf(endpoint: string) {
  const client = createDynamoDBClient(dynamoDBClientOptions(endpoint, { requestTimeoutMs: 30_000 }));
  const keyCipher = new KeyCipher(Buffer.from(values['master-key'], 'hex'));
  return { client, tableName: 'keys', keyCipher, freshness: new TableFreshness(), clock: systemClock, log };
}

async function measure(name: string, run: () => Promise<void>): Promise<FirstLoad> {
  const turns = watchTurns();
  const [startedAt, cpu, mainCpu] = [performance.now(), process.cpuUsage(), process.threadCpuUsage()];
  await run();
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const main = process.threadCpuUsage(mainCpu);
  const [longestMs, usualMs] = turns.stop();
  const [cpuSeconds, mainCpuSeconds] = [user + system, main.user + main.system].map((micros) => micros / 1e6) as [
    number,
    number,
  ];
  console.log(
    `${name}: ${seconds.toFixed(3)} s, ${cpuSeconds.toFixed(3)} s CPU, ${mainCpuSeconds.toFixed(3)} s of it on the main thread;` +
      ` turns of the event loop took at most ${longestMs.toFixed(1)} ms, 99 % of them ${usualMs.toFixed(1)} ms`,
  );
  return { seconds, cpuSeconds, mainCpuSeconds, longestTurnMs: longestMs };
}

/**
 * CPU time of the main thread between turns of its event loop: what other programs on this machine do is not counted.
 */
function watchTurns() {
  const took: number[] = [];
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let before = cpuMs();
  const timer = setInterval(() => {
    const now = cpuMs();
    took.push(now - before);
    before = now;
  }, 1);
  return {
    stop(): [longest: number, usual: number] {
      clearInterval(timer);
      took.sort((a, b) => a - b);
      return [took.at(-1) ?? 0, took[Math.floor(took.length * 0.99)] ?? 0];
    },
  };
}

function memory(): { readonly rss: number; readonly heap: number } {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed };
}
