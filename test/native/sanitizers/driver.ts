// Drives a build of the native addon with sanitizers: several JavaScript threads, each with keyrings of its own,
// sign, sign as groups, add, take, remove, wipe, close and ask wrongly, in a random order, and a part of the threads
// is ended in the middle. Every signature that comes is compared with what the portable core (blst) signs. All keys
// are TEST keys. `driver.ts ADDON SECONDS SEED`; nothing here opens a vsock.

import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import { MAX_ENTRY_BYTES } from '../../../common/receipts/entry.ts';
import { encodeBundle } from '../../../common/receipts/read-entry.ts';
import { TILE_WIDTH } from '../../../common/receipts/tree.ts';
import type { Addon, Keyring } from '../../../signer/native/load.ts';
import { fastestBundleRoot, rootInScript } from '../../../signer/receipts/bundle-hash.ts';

const THREADS = 3;
/** Batches under way in a keyring. */
const MAX_UNDER_WAY = 24;
const MAX_KEYS = 1_200;
/** More than the addon has tables, and each is signed more often than a table needs. */
const ROOTS = 24;
/** Of the signatures that are compared: the portable core takes a millisecond for each. */
const COMPARED = 16;
/** A thread lives so long at most, and is ended in the middle of what it does. */
const MAX_LIFE_MS = 1_500;

interface Key {
  readonly handle: number;
  readonly secret: Uint8Array;
  readonly publicKey: Uint8Array;
}

const [, , path = '', seconds = '10', seed = '1'] = isMainThread ? process.argv : ['', '', ...workerData];
const addon = createRequire(import.meta.url)(path) as Addon;

function randomNumbers(start: number): (below: number) => number {
  let state = start >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function secretOf(number: number): Uint8Array {
  const secret = Buffer.alloc(32);
  secret.writeUInt32BE(number + 1, 28);
  secret.write('TEST', 4);
  return secret;
}

const random = randomNumbers(Number(seed));
const roots = Array.from({ length: ROOTS }, (_, index) => Buffer.alloc(32, index + 1));
const devNull = openSync('/dev/null', 'r');
const rootByAddon = fastestBundleRoot(() => addon);
assert.notEqual(rootByAddon, rootInScript);
let signatures = 0;

/** Whole, or cut off: in memory of its own, so that a byte read behind it is found. */
function hashBundle(): void {
  const entries = Array.from({ length: TILE_WIDTH }, () => Buffer.alloc(random(MAX_ENTRY_BYTES + 1), random(256)));
  const bundle = encodeBundle(entries);
  assert.deepEqual(rootByAddon(Uint8Array.from(bundle)), rootInScript(bundle));
  assert.throws(() => rootByAddon(Uint8Array.from(bundle.subarray(0, 1 + random(bundle.length - 1)))), RangeError);
}

function askWrongly(keyring: Keyring): void {
  const wrong: (() => unknown)[] = [
    () => addon.signBatch(keyring, new Float64Array(33), new Uint8Array(33 * 32)),
    () => addon.signBatch(keyring, new Float64Array(2), new Uint8Array(63)),
    () => addon.signGroup(keyring, new Float64Array(0), new Uint8Array(32)),
    () => addon.signGroup({} as Keyring, new Float64Array(1), new Uint8Array(32)),
    () => addon.takeKeys(keyring, new Uint8Array(64), new Float64Array(1)),
    () => addon.takeKeys(keyring, new Uint8Array(1_025 * 32), new Float64Array(1_025)),
    () => addon.addKey(keyring, new Uint8Array(32), new Uint8Array(48)),
    () => addon.addKey(keyring, new Uint8Array(32).fill(0xff), new Uint8Array(48)),
    () => addon.allocateSecret(0, 'off'),
    () => addon.allocateSecret(1.5, 'off'),
    () => addon.openKeyring('never' as 'off', true, 1),
    () => addon.openKeyring('off', true, 257),
    () => addon.nsmRequest(devNull, new Uint8Array(4_097)),
    () => addon.vsockPeerCid(-1),
    () => addon.replaceDescriptor(0.5, 1),
  ];
  assert.throws(wrong[random(wrong.length)] ?? (() => undefined));
}

/** A keyring, until it is closed in the middle of its batches. */
async function useKeyring(until: number): Promise<void> {
  const keyring = addon.openKeyring(random(2) === 0 ? 'off' : 'best_effort', random(4) > 0, 1 + random(3));
  const keys: Key[] = [];
  const underWay = new Set<Promise<void>>();
  const add = (): void => {
    const secret = secretOf(random(2 ** 31));
    const publicKey = new Uint8Array(48);
    keys.push({ handle: addon.addKey(keyring, secret, publicKey), secret, publicKey });
  };
  const start = (work: Promise<void>): void => {
    const ended = work.finally(() => underWay.delete(ended));
    underWay.add(ended);
  };
  const pick = (): Key | undefined => keys[random(keys.length)];
  /** Some of them may be gone, and some never were. */
  const pickSome = (): (Key | undefined)[] =>
    Array.from({ length: 1 + random(32) }, () => (random(8) === 0 ? undefined : pick()));
  const handlesOf = (chosen: readonly (Key | undefined)[]): Float64Array =>
    Float64Array.from(chosen, (key) => key?.handle ?? [0, -1, 2.5, Number.NaN, 2 ** 60, 2 ** 24 * 7][random(6)] ?? 0);
  const compare = (chosen: readonly (Key | undefined)[], root: (index: number) => Uint8Array, bytes: ArrayBuffer) => {
    for (const [index, key] of chosen.entries()) {
      const signature = Buffer.from(bytes, index * 96, 96);
      if (key === undefined) assert.ok(signature.every((byte) => byte === 0));
      else if (random(COMPARED) === 0)
        assert.deepEqual(signature, Buffer.from(SecretKey.fromBytes(key.secret).sign(root(index)).toBytes()));
      signatures += 1;
    }
  };
  const steps: (() => void)[] = [
    add,
    add,
    () => {
      const count = 1 + random(700); // more than a slab of them
      const handles = new Float64Array(count);
      const secrets = Array.from({ length: count }, () => secretOf(random(2 ** 31)));
      if (keys.length + count > MAX_KEYS) return;
      addon.takeKeys(keyring, Buffer.concat(secrets), handles);
      for (const [index, secret] of secrets.entries())
        keys.push({ handle: handles[index] ?? 0, secret, publicKey: new Uint8Array() });
    },
    () => {
      const key = pick();
      if (key === undefined) return;
      addon.removeKey(keyring, key.handle);
      keys.splice(keys.indexOf(key), 1);
      addon.removeKey(keyring, key.handle);
    },
    ...Array.from({ length: 8 }, () => () => {
      const chosen = pickSome();
      const chosenRoots = chosen.map(() => roots[random(ROOTS)] ?? Buffer.alloc(32));
      const signed = addon.signBatch(keyring, handlesOf(chosen), Buffer.concat(chosenRoots));
      start(signed.then((bytes) => compare(chosen, (index) => chosenRoots[index] ?? Buffer.alloc(32), bytes)));
    }),
    ...Array.from({ length: 4 }, () => () => {
      const chosen = pickSome();
      const root = roots[random(ROOTS)] ?? Buffer.alloc(32);
      start(addon.signGroup(keyring, handlesOf(chosen), root).then((bytes) => compare(chosen, () => root, bytes)));
    }),
    () => {
      const chosen = pickSome();
      start(
        addon.publicKeys(keyring, handlesOf(chosen)).then((bytes) => {
          for (const [index, key] of chosen.entries())
            if (key !== undefined && key.publicKey.length > 0)
              assert.deepEqual(Buffer.from(bytes, index * 48, 48), Buffer.from(key.publicKey));
        }),
      );
    },
    () => {
      if (random(12) > 0) return;
      addon.wipeKeyring(keyring);
      keys.length = 0;
    },
    () => askWrongly(keyring),
    () => void (random(8) === 0 && hashBundle()),
    () => {
      new Uint8Array(addon.allocateSecret(1 + random(20_000), 'best_effort')).fill(1);
      addon.secretMemory();
      addon.unlockedKeys(keyring);
    },
    () =>
      start(
        addon.nsmRequest(devNull, new Uint8Array(1 + random(4_096))).then(
          () => assert.fail('no security module answered'),
          () => undefined,
        ),
      ),
  ];
  add();
  for (let count = 100 + random(400); count > 0 && Date.now() < until; count--) {
    steps[random(steps.length)]?.();
    if (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay);
  }
  if (random(3) > 0) await Promise.all(underWay);
  addon.closeKeyring(keyring); // in the middle of its batches, else
  addon.closeKeyring(keyring);
  assert.throws(() => addon.signBatch(keyring, new Float64Array(1), new Uint8Array(32)));
  await Promise.all(underWay);
}

const ends = Date.now() + Number(seconds) * 1000;
let threads = 0;
/** One thread after the other, each ended by itself or from outside. */
async function manyThreads(): Promise<void> {
  while (Date.now() < ends) {
    threads += 1;
    const life = (ends - Date.now()) / 1000;
    const worker = new Worker(new URL(import.meta.url), { workerData: [path, String(life), String(random(2 ** 31))] });
    const ended = new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    });
    const end = setTimeout(() => void worker.terminate(), 200 + random(MAX_LIFE_MS));
    await ended;
    clearTimeout(end);
  }
}

const others = isMainThread ? Promise.all(Array.from({ length: THREADS }, manyThreads)) : undefined;
while (Date.now() < ends) await useKeyring(ends);
await others;
if (isMainThread) console.log(`${signatures} signatures on the main thread, ${threads} other threads`);
