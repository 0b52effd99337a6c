// What `make demo-enclave` runs: the appliance's whole life on one ordinary machine. It builds an image, boots it in
// QEMU beside a parent, and tells what happens there (test/guest/appliance/programs/life.ts, to be read from top to
// bottom). The NSM, KMS and DynamoDB are stand-ins, all keys are TEST keys; the image, the parent proxy and the
// operator's commands are the program's own.

import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { applianceSuite } from '../test/guest/appliance/suite.ts';
import { openPackages } from '../test/guest/packages.ts';
import { runBoot } from '../test/guest/run-boot.ts';
import { GuestUnavailable, requireTools } from '../test/guest/tools.ts';
import { addonForTests, PROJECT_ROOT } from '../test/support/addon.ts';

const FOLDER = join(PROJECT_ROOT, 'build/guest');
const MEASURED: readonly (readonly [string, string])[] = [
  ['PCR0', 'the image: kernel, first process, Node.js, signer'],
  ['PCR16', 'its configuration'],
  ['PCR17', 'the custody ceremony'],
];
const BOOTING = `  The program's own: the image and all in it, the parent proxy, every operator command, vsock between them.
  Stand-ins: the security module (NSM), whose documents a TEST authority signs; KMS and DynamoDB, behind TLS.
  The machine is emulated without hardware to help: some minutes.`;

process.exitCode = await demonstrate().catch((error: unknown) => {
  if (!(error instanceof GuestUnavailable)) throw error;
  process.stderr.write(`demo-enclave: ${error.message}\n`);
  return 1;
});

async function demonstrate(): Promise<number> {
  requireTools({ withCompiler: true });
  if (!addonForTests()) throw new GuestUnavailable('the image needs the native addon');
  heading('Build an image: strongroom eif build');
  say("  The kernel is Debian's; the first run fetches it.");
  const packages = openPackages(FOLDER);
  const boots = await applianceSuite.prepare(packages, FOLDER, (line) => say(`  ${line}`));
  tellMeasurements();
  heading('Boot it in QEMU, beside the parent instance');
  say(BOOTING);
  const console = join(FOLDER, 'demonstration.log');
  let failed = 0;
  for (const boot of boots) {
    const { tally } = await runBoot(boot, { kernel: packages.kernel, console, show: tellResult, onLine: narrator() });
    failed += tally.failed;
  }
  say(`\nEverything that was written, by whom: ${relative('', console)}`);
  say('Read on: docs/guides/image.md, docs/guides/attestation.md, parent-proxy/deploy/README.md');
  return failed === 0 ? 0 : 1;
}

function tellMeasurements(): void {
  const folder = join(FOLDER, 'appliance');
  const pcrs = JSON.parse(readFileSync(join(folder, 'pcrs.json'), 'utf8')) as { measurements: Record<string, string> };
  say(`  ${relative('', join(folder, 'image.eif'))}; in pcrs.json beside it, what the platform will measure:`);
  for (const [name, what] of MEASURED) say(`    ${name.padEnd(5)}  ${pcrs.measurements[name]?.slice(0, 16)}…  ${what}`);
}

function tellResult(line: string): void {
  say(line.replace(/^not ok - /, '  ✗ ').replace(/^ok - /, '  ✓ '));
}

/** Tells of the console's lines those that are part of the story; the rest is in its file. */
function narrator(): (line: string) => void {
  const wanted = partsOfTheReport();
  return (line) => {
    const [, kind, text = ''] = /^(chapter|report|signed): ?(.*)$/.exec(line) ?? [];
    if (kind === 'chapter') heading(text);
    else if (kind === 'report' && wanted(text)) say(`    │ ${text}`);
    else if (kind === 'signed') tellSignature(text);
  };
}

/**
 * The verdict and the steps to it, of the certificate's evidence; of the fresh document the verdict; no registers, no
 * chains.
 */
function partsOfTheReport(): (line: string) => boolean {
  let [tables, shown] = [0, true];
  return (line) => {
    if (/^[A-Z]+( [A-Z]+)* {2}/.test(line)) shown = ++tables === 1;
    else if (line.startsWith('the fresh document')) shown = true;
    return shown && line !== '';
  };
}

function tellSignature(json: string): void {
  const { publicKey, text } = JSON.parse(json) as { publicKey: string; text: string };
  const { signature } = JSON.parse(text) as { signature: string };
  say(`    │ key        ${publicKey.slice(0, 34)}…\n    │ signature  ${signature.slice(0, 34)}…`);
}

function heading(text: string): void {
  say(`\n${text}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
