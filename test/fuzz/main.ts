// `make fuzz SECONDS=… TARGET=… KEEP=1`: fuzzes every decoder of targets.ts in a process of its own, from the corpus in
// test/fuzz/corpus. Inputs that fault are left under build/fuzz. With KEEP=1 the inputs that reached something new
// become the corpus of their decoder, the smallest first, up to a limit.

import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inParallel } from '../../signer/parallel.ts';
import { type FuzzResult, fuzz, nameOf } from './engine.ts';
import { TARGETS } from './targets.ts';

const CORPUS = join(import.meta.dirname, 'corpus');
const BUILD = join(import.meta.dirname, '../../build/fuzz');
const PARALLEL = 2;
const MAX_KEPT = 24;
const MAX_KEPT_BYTES = 2_048;
/** Longer than a run: an input that never ends. */
const MAX_HANG_SECONDS = 600;

async function fuzzOne(name: string, seconds: number, keeps: boolean): Promise<boolean> {
  const target = TARGETS.find((one) => one.name === name);
  if (target === undefined) throw new Error(`no decoder is named ${name}`);
  const folder = join(CORPUS, name);
  const ends = performance.now() + seconds * 1000;
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);
  const result = await fuzz(target, { corpus: read(folder), until: () => performance.now() >= ends, seed });
  for (const { input, error } of result.faults) {
    mkdirSync(BUILD, { recursive: true });
    const file = join(BUILD, `${name}-${nameOf(input)}`);
    writeFileSync(file, input);
    console.log(`${name}: FAULT, input in ${file}`, error);
  }
  if (keeps) keep(folder, result);
  const { runs, features, faults, kept } = result;
  console.log(
    `${name}: ${runs} inputs, ${features} places, ${kept.length} kept, ${faults.length} faults (seed ${seed})`,
  );
  return faults.length === 0;
}

function read(folder: string): Uint8Array[] {
  try {
    return readdirSync(folder)
      .sort()
      .map((file) => readFileSync(join(folder, file)));
  } catch {
    return [];
  }
}

function keep(folder: string, { kept }: FuzzResult): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const small = kept.filter(({ length }) => length <= MAX_KEPT_BYTES).slice(-MAX_KEPT);
  for (const input of small) writeFileSync(join(folder, nameOf(input)), input);
}

/** A decoder in a process of its own: one that hangs or ends by itself is a fault of it alone. */
function inProcess(name: string, seconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [import.meta.filename, name, String(seconds)], { stdio: 'inherit' });
    const late = setTimeout(
      () => {
        console.log(`${name}: FAULT, an input never ends`);
        child.kill('SIGKILL');
      },
      (seconds + MAX_HANG_SECONDS) * 1000,
    );
    child.once('exit', (code) => {
      clearTimeout(late);
      resolve(code === 0);
    });
  });
}

const [only, seconds] = process.argv.slice(2);
if (only !== undefined && only !== '' && seconds !== undefined) {
  const isGood = await fuzzOne(only, Number(seconds), process.env['KEEP'] === '1');
  process.exitCode = isGood ? 0 : 1;
} else {
  const given = Number(process.env['SECONDS'] || 60);
  const faulty: string[] = [];
  await inParallel(TARGETS, PARALLEL, async ({ name }) => {
    if (!(await inProcess(name, given))) faulty.push(name);
  });
  console.log(`${TARGETS.length} decoders, ${given} s each, ${faulty.length} with faults`);
  if (faulty.length > 0) process.exitCode = 1;
}
