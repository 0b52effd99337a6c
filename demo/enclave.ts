// What `make demo-enclave` runs: the appliance's whole life on one ordinary machine. It builds an image, boots it in QEMU beside a parent, and
// tells what happens there (test/guest/appliance/programs/life.ts, to be read from top to bottom). The NSM, KMS and DynamoDB are
// stand-ins, all keys are TEST keys; the image, the parent proxy and the operator's commands are the program's own.

import { join } from 'node:path';
import { applianceSuite } from '../test/guest/appliance/suite.ts';
import { bootGuest } from '../test/guest/boot-guest.ts';
import { openPackages } from '../test/guest/packages.ts';
import { readResults } from '../test/guest/results.ts';
import { GuestUnavailable, requireTools } from '../test/guest/tools.ts';
import { addonForTests, PROJECT_ROOT } from '../test/support/addon.ts';

const FOLDER = join(PROJECT_ROOT, 'build/guest');
/** Lines of the guest's console that tell the story; the rest is in its file. */
const TOLD = /^(?:report|signed): ?(.*)$/;

process.exitCode = await demonstrate().catch((error: unknown) => {
  if (!(error instanceof GuestUnavailable)) throw error;
  process.stderr.write(`demo-enclave: ${error.message}\n`);
  return 1;
});

async function demonstrate(): Promise<number> {
  requireTools();
  if (!addonForTests()) throw new GuestUnavailable('there is no C compiler (cc), and the image needs the native addon');
  say('Building an enclave image: strongroom eif build');
  const packages = openPackages(FOLDER);
  const guest = await applianceSuite.prepare(packages, FOLDER);
  say(`  ${join(FOLDER, 'appliance/image.eif')}, with what will be measured of it in pcrs.json beside it`);
  say('Booting it in QEMU, beside a parent instance: NSM, KMS and DynamoDB are stand-ins');
  const results = readResults((line) => say(line.replace(/^ok - /, '\n✓ ').replace(/^not ok - /, '\n✗ ')));
  const console = join(FOLDER, 'demonstration.log');
  const end = await bootGuest({
    ...guest,
    kernel: packages.kernel,
    console,
    onLine(line) {
      const [, told] = TOLD.exec(line) ?? [];
      if (told !== undefined) say(`  ${told}`);
      results.line(line);
    },
  });
  const problem = results.ended(end);
  if (problem !== undefined) say(`✗ the guest: ${problem}`);
  say(`\nEverything that was written, by whom: ${console}`);
  say('Read: docs/guides/image.md, docs/guides/attestation.md, parent-proxy/deploy/README.md');
  return results.tally.failed === 0 ? 0 : 1;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
