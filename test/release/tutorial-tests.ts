// docs/tutorial and what docs/guides/install.md says of the tarball, word by word, with the files of a release on a
// machine of its own.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { noOwnMachine, openOwnMachine } from '../runbooks/own-machine.ts';
import type { Block } from '../runbooks/page.ts';
import { rehearse } from '../runbooks/rehearse.ts';
import type { OpenWorld } from '../runbooks/world.ts';
import type { MadeRelease } from './made-release.ts';

const NO_OWN_MACHINE = noOwnMachine();

export function tutorialTests(made: () => MadeRelease): void {
  it.skipIf(NO_OWN_MACHINE)('the tutorial leads to a first signature', () =>
    withReleaseFiles(made(), /\.tar\.gz$|^SHA256SUMS$/, async (world) => {
      const rehearsed = await rehearse('docs/tutorial/first-signature.md', world, {
        before: (block) => untilLogged(block, world),
      });
      expect(rehearsed.filter(({ block }) => block.shown.length > 0).length).toBeGreaterThan(8);
    }),
  );

  it.skipIf(NO_OWN_MACHINE)('the guide verifies and unpacks a release', () =>
    withReleaseFiles(made(), /./, async (world) => {
      // What its publisher signs (signature.test.ts).
      const list = ['--check', '--strict', 'SHA256SUMS'];
      expect(execFileSync('sha256sum', list, { cwd: world.folder, encoding: 'utf8' })).toContain('.deb: OK');
      const [unpacked] = await rehearse('docs/guides/install.md', world, { elsewhere: 7 });
      expect(unpacked?.output).toMatch(/^strongroom \d/);
    }),
  );
}

/** A reader is slower than the log and the metrics, which follow the answers to the client. A machine need not be. */
async function untilLogged({ commands }: Block, { folder }: OpenWorld): Promise<void> {
  if (!/(metrics\.txt|signer\.log)$/m.test(commands)) return;
  const requests = () => readFileSync(join(folder, 'signer.log'), 'utf8').match(/ scope=sign /g)?.length;
  await expect.poll(requests).toBe(4);
}

/** @param wanted the names of the files that the reader has */
async function withReleaseFiles(
  { release }: MadeRelease,
  wanted: RegExp,
  use: (world: OpenWorld) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sr-release-'));
  const world = await openOwnMachine({ folder, env: {}, values: {}, programs: {} });
  try {
    for (const name of readdirSync(release).filter((file) => wanted.test(file))) {
      copyFileSync(join(release, name), join(world.folder, name));
    }
    await use(world);
  } finally {
    await world.close();
    rmSync(folder, { recursive: true });
  }
}
