// `make test-guest`: the tests that need a kernel of their own (vsock, a Nitro Secure Module), in QEMU. Ends with
// `N passed, N failed, N skipped`; the exit code is 0 when nothing failed. Names of suites as arguments run these only.

import { join } from 'node:path';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { applianceSuite } from './appliance/suite.ts';
import { initSuite } from './init/suite.ts';
import { kernelSuite } from './kernel/suite.ts';
import { machineSuite } from './machine/suite.ts';
import { nativeSuite } from './native/suite.ts';
import { type GuestPackages, openPackages } from './packages.ts';
import { runBoot } from './run-boot.ts';
import type { GuestSuite, OutsideSuite, Tally } from './suite.ts';
import { throughputSuite } from './throughput/suite.ts';
import { GuestUnavailable, requireTools } from './tools.ts';

const SUITES: readonly (GuestSuite | OutsideSuite)[] = [
  initSuite,
  nativeSuite,
  applianceSuite,
  kernelSuite,
  machineSuite,
  throughputSuite,
];
const FOLDER = join(PROJECT_ROOT, 'build/guest');

// Leaving by way of 'exit' stops the guest.
for (const [signal, code] of [
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => process.exit(code));
}

const total: Tally = { passed: 0, failed: 0, skipped: 0 };
try {
  const packages = prepare();
  for (const suite of chosen(process.argv.slice(2))) add(total, await runSuite(suite, packages));
} catch (error) {
  if (!(error instanceof GuestUnavailable)) throw error;
  process.stderr.write(`test-guest: ${error.message}\n`);
  total.failed += 1;
}
process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
process.exitCode = total.failed === 0 ? 0 : 1;

function prepare(): GuestPackages {
  requireTools({ withCompiler: true });
  if (!addonForTests()) throw new GuestUnavailable('there is no C compiler (cc), and the guest tests the native addon');
  return openPackages(FOLDER);
}

function chosen(names: readonly string[]): typeof SUITES {
  const unknown = names.find((name) => !SUITES.some((suite) => suite.name === name));
  if (unknown === undefined) return SUITES.filter(({ name }) => names.length === 0 || names.includes(name));
  throw new GuestUnavailable(`there is no suite ${unknown}; there are ${SUITES.map(({ name }) => name).join(', ')}`);
}

async function runSuite(suite: GuestSuite | OutsideSuite, packages: GuestPackages): Promise<Tally> {
  process.stdout.write(`${suite.name}\n`);
  return 'run' in suite ? runOutside(suite) : runBoots(suite, packages);
}

function show(line: string): void {
  process.stdout.write(`  ${line}\n`);
}

/** What such a suite needs is much: a machine without it says so, and has not failed. */
async function runOutside(suite: OutsideSuite): Promise<Tally> {
  try {
    return await suite.run(FOLDER, show);
  } catch (error) {
    if (!(error instanceof GuestUnavailable)) throw error;
    show(`skipped - all of ${suite.name}: ${error.message}`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
}

async function runBoots(suite: GuestSuite, packages: GuestPackages): Promise<Tally> {
  const sum: Tally = { passed: 0, failed: 0, skipped: 0 };
  for (const boot of await suite.prepare(packages, FOLDER)) {
    const name = boot.name === undefined ? suite.name : `${suite.name}-${boot.name}`;
    const console = join(FOLDER, `${name}.log`);
    const { tally, end } = await runBoot(boot, { kernel: packages.kernel, console, show });
    add(sum, tally);
    show(`${end.seconds.toFixed(1)} s; its console is in ${console}`);
  }
  return sum;
}

function add(sum: Tally, tally: Tally): void {
  sum.passed += tally.passed;
  sum.failed += tally.failed;
  sum.skipped += tally.skipped;
}
