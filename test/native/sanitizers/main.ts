// `make check-sanitizers`: runs driver.ts on builds of the addon with AddressSanitizer and
// UndefinedBehaviorSanitizer, and with ThreadSanitizer, in the real Node with the sanitizer's library loaded first.
// Node itself has no sanitizer, so what is reported of it alone is counted and not judged (ThreadSanitizer does not
// see V8's atomics). A report is ours when one of its stacks begins in our C, or one call above it; where a thread or a
// mutex was created says nothing about who used it. Two builds with a fault have to be reported.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const BUILD = join(import.meta.dirname, '../../../build/native');
const DRIVER = join(import.meta.dirname, 'driver.ts');
const MAX_LATE_SECONDS = 900;
/** A fault is found in the first second; a race on a machine that has no core for both threads, in a longer run. */
const BROKEN_SECONDS = [5, 30, 120];

interface Build {
  readonly name: string;
  readonly library: string;
  readonly isBroken: boolean;
}

const BUILDS: readonly Build[] = [
  { name: 'address', library: 'libasan.so', isBroken: false },
  { name: 'thread', library: 'libtsan.so', isBroken: false },
  { name: 'address-broken', library: 'libasan.so', isBroken: true },
  { name: 'thread-broken', library: 'libtsan.so', isBroken: true },
];

function readReports(folder: string): string[] {
  return readdirSync(folder)
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').split(/^(?==+\n)|^(?=(?:Direct|Indirect) leak of)/m))
    .filter((text) => /ERROR:|WARNING:|leak of|runtime error:/.test(text));
}

/**
 * V8 races with itself too in the threads that our C created. ThreadSanitizer names the mutexes of an earlier access as
 * it reconstructs them, so one of ours can stand in a report of V8's heap.
 */
const withoutCreations = (report: string): string =>
  report.replace(/^ {2}(?:Thread T|Mutex M)\d+ .* created .*\n(?: {4}#.*\n)*/gm, '');

const isOurs = (report: string): boolean =>
  /^ {4}#[01] .*(?:signer\/native\/\w+\.c|strongroom\.node)/m.test(withoutCreations(report)) ||
  /signer\/native\/\w+\.[ch]:\d+:\d+: runtime error:/.test(report);

function run({ name, library }: Build, seconds: number, seed: number) {
  const folder = join(BUILD, name, 'reports');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const path = spawnSync('cc', [`-print-file-name=${library}`], { encoding: 'utf8' }).stdout.trim();
  const options = `log_path=${join(folder, 'report')}:exitcode=66`;
  const result = spawnSync(
    process.execPath,
    [DRIVER, join(BUILD, name, 'strongroom.node'), String(seconds), String(seed)],
    {
      env: {
        ...process.env,
        LD_PRELOAD: path,
        ASAN_OPTIONS: `${options}:detect_leaks=1`,
        UBSAN_OPTIONS: `${options}:print_stacktrace=1`,
        TSAN_OPTIONS: `${options}:history_size=4`,
      },
      encoding: 'utf8',
      timeout: (seconds + MAX_LATE_SECONDS) * 1000,
      killSignal: 'SIGKILL',
    },
  );
  const reports = readReports(folder);
  return { ...result, ours: reports.filter(isOurs), others: reports.length - reports.filter(isOurs).length };
}

/** Until it reports something of ours. */
function runBroken(build: Build, seed: number) {
  const [first = 0, ...longer] = BROKEN_SECONDS;
  let result = run(build, first, seed);
  for (const seconds of longer) {
    if (result.ours.length > 0) break;
    result = run(build, seconds, seed);
  }
  return result;
}

const seconds = Number(process.env['SECONDS'] || 30);
const seed = Number(process.env['SEED'] || Date.now() % 2 ** 31);
const faults: string[] = [];
for (const build of BUILDS) {
  const { status, stdout, stderr, ours, others } = build.isBroken ? runBroken(build, seed) : run(build, seconds, seed);
  // 66: there are reports, judged below.
  const hasEnded = (status === 0 || status === 66) && stdout.includes('signatures');
  const isGood = build.isBroken ? ours.length > 0 : ours.length === 0 && hasEnded;
  console.log(
    `${build.name}: ${ours.length} reports of our code, ${others} of Node's alone; ${isGood ? 'as it has to be' : 'FAULT'}; ${
      stdout.trim() || `ended with ${status}`
    } (seed ${seed})`,
  );
  if (isGood) continue;
  faults.push(build.name);
  console.log(ours.slice(0, 3).join('\n') || stderr.slice(-4_000));
}
if (faults.length > 0) process.exitCode = 1;
