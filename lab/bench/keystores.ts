// How fast keys load and what they cost to keep: EIP-2335 keystores at their full price, raw key files, and memory a
// key. Run: bin/pinned-node --expose-gc lab/bench/keystores.ts [--keystores N] [--raw N] [--kept N] [--cached N]
// [--core portable]

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { KeyFiles } from '../../signer/keys/files/key-files.ts';
import { KeystorePool, memoryLimitBytes } from '../../signer/keys/keystores/pool.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import {
  FULL_PBKDF2,
  FULL_SCRYPT,
  LIGHT_SCRYPT,
  makeKeyDirectory,
  testSecret,
  writeKeystore,
  writeRawKey,
} from '../../test/support/keys.ts';

const { values } = parseArgs({
  options: {
    keystores: { type: 'string', default: '20' },
    raw: { type: 'string', default: '5000' },
    kept: { type: 'string', default: '100000' },
    /** Keystores of light parameters that a key cache keeps: what a later start takes does not depend on them. */
    cached: { type: 'string', default: '10000' },
    core: { type: 'string' },
  },
});

const log: Log = { debug() {}, info() {}, warn: console.warn, error: console.error };

const core = await openBlsCore({ log, prefer: values.core === 'portable' ? 'portable' : 'native' });
console.log(`${core.kind} core, ${availableParallelism()} cores, Node ${process.version}`);
await benchLoad(core, 'scrypt keystores', Number(values.keystores), (path, number) =>
  writeKeystore(path, `k${number}`, testSecret(number), 'password', FULL_SCRYPT),
);
await benchLoad(core, 'pbkdf2 keystores', Number(values.keystores) * 5, (path, number) =>
  writeKeystore(path, `k${number}`, testSecret(number), 'password', FULL_PBKDF2),
);
await benchLoad(core, 'raw key files', Number(values.raw), (path, number) =>
  writeRawKey(path, `r${number}`, testSecret(number)),
);
await benchCache(core, Number(values.cached));
await benchMemory(core, Number(values.kept));
await core.close();

/** A first start, which decrypts and writes the cache, and one that opens it. */
async function benchCache(core: BlsCore, count: number) {
  const directory = makeKeyDirectory();
  for (let number = 0; number < count; number++) {
    writeKeystore(directory.path, `k${number}`, testSecret(number), 'password', LIGHT_SCRYPT);
  }
  const options = { paths: [directory.path], rawLoadConcurrency: 128, cache: join(directory.path, 'cache') };
  for (const name of ['first start, light scrypt', 'later start, with the cache']) {
    const store = new KeyStore({}, { vault: core, clock: systemClock });
    const pool = new KeystorePool(
      { keystoreLoadConcurrency: 128, memoryLimitBytes: memoryLimitBytes(), cores: availableParallelism() },
      { log },
    );
    const cpu = process.cpuUsage();
    const { loaded, seconds } = await new KeyFiles(options, { store, pool, log, clock: systemClock }).load();
    const { user, system } = process.cpuUsage(cpu);
    const cpuSeconds = (user + system) / 1e6;
    console.log(`${name}: ${loaded} keystores in ${seconds.toFixed(2)} s, ${cpuSeconds.toFixed(2)} s of CPU`);
    await pool.close();
    store.seal();
  }
  directory.remove();
}

async function benchLoad(core: BlsCore, name: string, count: number, write: (path: string, number: number) => void) {
  const directory = makeKeyDirectory();
  for (let number = 0; number < count; number++) write(directory.path, number);
  const store = new KeyStore({}, { vault: core, clock: systemClock });
  const pool = new KeystorePool(
    { keystoreLoadConcurrency: 128, memoryLimitBytes: memoryLimitBytes(), cores: availableParallelism() },
    { log },
  );
  const cpu = process.cpuUsage();
  const { loaded, seconds } = await new KeyFiles(
    { paths: [directory.path], rawLoadConcurrency: 128 },
    { store, pool, log, clock: systemClock },
  ).load();
  const { user, system } = process.cpuUsage(cpu);
  const cpuMilliseconds = (user + system) / 1000 / loaded;
  console.log(
    `${name}: ${loaded} in ${seconds.toFixed(2)} s, ${(loaded / seconds).toFixed(1)}/s, ${cpuMilliseconds.toFixed(2)} ms CPU each, ${pool.concurrency} workers`,
  );
  await pool.close();
  store.seal();
  directory.remove();
}

/** Resident memory that `count` keys add, in the store and in the core, with the list of public keys made once. */
async function benchMemory(core: BlsCore, count: number) {
  const store = new KeyStore({}, { vault: core, clock: systemClock });
  const before = await settledMemory();
  const started = performance.now();
  for (let number = 0; number < count; number++) {
    store.add(testSecret(number), 'memory');
    // As a load from files does: blst frees its objects between turns of the event loop.
    if (number % 100 === 0) await setImmediate();
  }
  const addMicroseconds = ((performance.now() - started) * 1000) / count;
  store.completeFirstLoad();
  const listStarted = performance.now();
  store.publicKeys();
  const listMilliseconds = performance.now() - listStarted;
  const after = await settledMemory();
  console.log(
    `${count} keys: ${((after.rss - before.rss) / count).toFixed(0)} bytes resident a key, ` +
      `${((after.heapUsed - before.heapUsed) / count).toFixed(0)} of them on the heap; ` +
      `add ${addMicroseconds.toFixed(0)} µs, list ${listMilliseconds.toFixed(0)} ms`,
  );
  store.seal();
}

async function settledMemory() {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  for (let round = 0; round < 3; round++) {
    globalThis.gc();
    await setImmediate();
  }
  return process.memoryUsage();
}
