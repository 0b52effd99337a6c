// How long a start waits for its keys: a large key table, and scrypt keystores at their full price, the first time and
// from the key cache. Each figure stands beside raw work of the same kind in the same run, because the machine is
// shared; CPU counts as well as time. The keystores are made once and stay in a folder that is named in the output.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { systemClock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { KeyFiles } from '../../signer/keys/files/key-files.ts';
import { KeystorePool, memoryLimitBytes } from '../../signer/keys/keystores/pool.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { makeKeyDirectory } from '../../test/support/keys.ts';
import { BARS, type Bar, type Core, row } from './bars.ts';
import type { FirstLoad } from './key-table.ts';
import { makeKeystores, measureRaw, type RawOpening } from './raw-opening.ts';

const TABLE_KEYS = 100_000;
const RAW_PUBLIC_KEYS = 20_000;
const RAW_SCRYPTS_PER_CORE = 6;
/** Scrypt of a start beside raw scrypt: pairs of equal code differ by as much on a shared machine. */
const AS_RAW: Bar = { accept: 1.15, good: 1.05 };
const KEYSTORES = fileURLToPath(new URL('../../build/bench/scrypt-keystores', import.meta.url));
const quiet: Log = { debug() {}, info() {}, warn: console.warn, error: console.error };

type Say = (line: string) => void;

export async function measureTimeToReady(core: Core, options: { readonly keystores: number }, say: Say) {
  await tableReady(core, say);
  await keystoresReady(core, options.keystores, say);
}

async function tableReady(core: Core, say: Say): Promise<void> {
  const before = await measureRaw('publicKeys', RAW_PUBLIC_KEYS);
  const program = fileURLToPath(new URL('./key-table.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    program,
    '--json',
    '--keys',
    `${TABLE_KEYS}`,
    '--core',
    core,
  ]);
  const load: FirstLoad = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  const raw = mean(before, await measureRaw('publicKeys', RAW_PUBLIC_KEYS));
  say(`time to ready: a key table of ${TABLE_KEYS} keys, the table's stand-in on the same cores`);
  say(row('until the list is answered', load.seconds, BARS[core].tableReady));
  say(row('beside raw public keys, same number', (load.seconds * raw.perSecond) / TABLE_KEYS));
  say(row('CPU, s', load.cpuSeconds));
  say(row('CPU of the main thread, s', load.mainCpuSeconds));
  say(row('CPU of raw public keys, s', raw.cpuSeconds * TABLE_KEYS));
  say(row('longest turn of the main thread, ms', load.longestTurnMs));
}

async function keystoresReady(kind: Core, count: number, say: Say): Promise<void> {
  await makeMissingKeystores(count, say);
  const core = await openBlsCore({ log: quiet, prefer: kind });
  const directory = makeKeyDirectory();
  for (let number = 0; number < count; number++) {
    for (const end of ['json', 'password', 'yaml']) {
      symlinkSync(join(KEYSTORES, `k${number}.${end}`), join(directory.path, `k${number}.${end}`));
    }
  }
  const cache = join(directory.path, 'cache');
  const scrypts = RAW_SCRYPTS_PER_CORE * availableParallelism();
  const before = await measureRaw('scrypt', scrypts);
  const cold = await start(core, directory.path, cache);
  const raw = mean(before, await measureRaw('scrypt', scrypts));
  const warm = await start(core, directory.path, cache);
  if (cold.loaded !== count || warm.loaded !== count) throw new Error('keystores are missing');
  say(`time to ready: ${count} real scrypt keystores`);
  say(row('cold, s', cold.seconds));
  say(row('cold beside raw scrypt: time', (cold.seconds * raw.perSecond) / count, AS_RAW));
  say(row('cold beside raw scrypt: CPU', cold.cpuSeconds / count / raw.cpuSeconds, AS_RAW));
  say(row('cold, a key: CPU, ms', (cold.cpuSeconds * 1000) / count));
  say(row('from the cache', warm.seconds, BARS[kind].cachedReady));
  say(row('from the cache: CPU, s', warm.cpuSeconds));
  say(row('of it raw scrypt, once: CPU, s', raw.cpuSeconds));
  directory.remove();
  await core.close();
}

/** They take 0.7 s of CPU each, and twice as much with the start that is measured. */
async function makeMissingKeystores(count: number, say: Say): Promise<void> {
  mkdirSync(KEYSTORES, { recursive: true });
  const complete = (number: number) => existsSync(join(KEYSTORES, `k${number}.yaml`)); // written last
  const missing = Array.from({ length: count }, (_, number) => number).filter((number) => !complete(number));
  say(
    `scrypt keystores are kept in ${KEYSTORES}: ${readdirSync(KEYSTORES).length / 3} there, ${missing.length} to be made`,
  );
  if (missing.length > 0) await makeKeystores(KEYSTORES, missing);
}

async function start(core: BlsCore, path: string, cache: string) {
  const store = new KeyStore({}, { vault: core, clock: systemClock });
  const cores = availableParallelism();
  const pool = new KeystorePool(
    { keystoreLoadConcurrency: 128, memoryLimitBytes: memoryLimitBytes(), cores },
    { log: quiet },
  );
  const [startedAt, cpu] = [performance.now(), process.cpuUsage()];
  const files = new KeyFiles(
    { paths: [path], rawLoadConcurrency: 128, cache },
    { store, pool, log: quiet, clock: systemClock },
  );
  const { loaded } = await files.load();
  store.completeFirstLoad();
  if (store.publicKeys().length !== loaded) throw new Error('keys are missing from the list');
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await pool.close();
  store.seal();
  return { loaded, seconds, cpuSeconds: (user + system) / 1e6 };
}

function mean(one: RawOpening, other: RawOpening): RawOpening {
  return { perSecond: (one.perSecond + other.perSecond) / 2, cpuSeconds: (one.cpuSeconds + other.cpuSeconds) / 2 };
}
