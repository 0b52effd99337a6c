// `make check-model`: runs the models of this folder in Spin. Each run is a world, with what it may do; without a
// protection Spin has to find two slashable signatures, with all of them none. A counterexample is left as a text under
// build/model. Trusts Spin and the C compiler; refuses a run that was cut short and is not said to be random.

import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inParallel } from '../../signer/parallel.ts';
import { type ModelRun, MUTANTS, RANDOM, WORLDS } from './runs.ts';

const run = promisify(execFile);
const FOLDER = import.meta.dirname;
const BUILD = join(FOLDER, '../../build/model');
const PARALLEL = 2;
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_MEGABYTES = 3_500;

interface Outcome {
  readonly states: number;
  readonly seconds: number;
  readonly found: boolean;
  readonly isWhole: boolean;
}

async function check(model: ModelRun): Promise<Outcome> {
  const directory = join(BUILD, model.name.replaceAll(/[^a-z0-9]+/g, '-'));
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const file of ['rules.pml', 'binding.pml', `${model.world}.pml`])
    copyFileSync(join(FOLDER, file), join(directory, file));
  const inside = { cwd: directory, maxBuffer: MAX_OUTPUT_BYTES };
  await run('spin', ['-a', ...model.defines.map((name) => `-D${name}`), `${model.world}.pml`], inside);
  const isRandom = model.minutes !== undefined;
  const storing = isRandom ? ['-DBITSTATE', '-DRANDOMIZE'] : ['-DCOLLAPSE', `-DMEMLIM=${MAX_MEGABYTES}`];
  await run('gcc', ['-O2', '-w', '-DSAFETY', '-DNOCLAIM', '-DNOFAIR', ...storing, '-o', 'pan', 'pan.c'], inside);
  const depth = model.depth ?? 100_000;
  const limits = isRandom ? [`-m${depth}`, '-w30', `-Q${model.minutes}`] : [`-m${depth}`, '-w24'];
  const started = performance.now();
  const { stdout } = await run('./pan', limits, inside);
  const seconds = (performance.now() - started) / 1000;
  const found = /errors: 1/.test(stdout);
  if (found) {
    const trace = await run('./pan', ['-r', `${model.world}.pml.trail`], inside).catch((error) => error);
    // The model's own words, without Spin's steps between them and the state at the end.
    const [steps = ''] = String(trace.stdout).split('global vars:');
    const lines = steps.split('\n').filter((line) => line.trim() !== '' && !/^\s*\d+:/.test(line));
    writeFileSync(join(directory, 'trace.txt'), `${lines.join('\n')}\n`);
  }
  for (const file of ['pan.c', 'pan.h', 'pan.b', 'pan.m', 'pan.p', 'pan.t'])
    rmSync(join(directory, file), { force: true });
  const states = Number(/([0-9.e+]+) states, stored/.exec(stdout)?.[1] ?? 0);
  const isWhole = !/max search depth too small|Search not completed|out of memory/.test(stdout);
  writeFileSync(join(directory, 'output.txt'), stdout);
  return { states, seconds, found, isWhole };
}

function faultOf(model: ModelRun, { found, isWhole }: Outcome): string | undefined {
  if (model.expects === 'a pair') return found ? undefined : 'nothing slashable was found without this protection';
  if (found) return 'TWO SLASHABLE SIGNATURES';
  return isWhole || model.minutes !== undefined ? undefined : 'the search was cut short';
}

async function main(): Promise<void> {
  const wanted = new RegExp(process.argv[2] ?? '');
  const models = [...WORLDS, ...MUTANTS, ...RANDOM].filter(({ name }) => wanted.test(name));
  if (models.length === 0) throw new Error(`no run is named ${wanted.source}`);
  let faults = 0;
  await inParallel(models, PARALLEL, async (model) => {
    const outcome = await check(model);
    const fault = faultOf(model, outcome);
    if (fault !== undefined) faults += 1;
    const size = `${outcome.states.toLocaleString('en')} states, ${outcome.seconds.toFixed(1)} s`;
    const kind = model.minutes === undefined ? 'exhaustive' : 'random';
    const result = model.expects === 'a pair' ? 'a slashable pair, as it has to be' : `${kind}, nothing slashable`;
    console.log(`${fault === undefined ? 'ok  ' : 'FAIL'} ${model.name}: ${fault ?? result} (${size})`);
    if (outcome.found && (fault !== undefined || models.length === 1)) console.log(traceOf(model));
  });
  console.log(`${models.length - faults} passed, ${faults} failed`);
  if (faults > 0) process.exitCode = 1;
}

function traceOf({ name }: ModelRun): string {
  return readFileSync(join(BUILD, name.replaceAll(/[^a-z0-9]+/g, '-'), 'trace.txt'), 'utf8').replaceAll(/^/gm, '    ');
}

await main();
