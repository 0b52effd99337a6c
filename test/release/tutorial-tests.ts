// docs/tutorial, word by word, with the tarball of a release on a machine of its own.

import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NO_OWN_MACHINE, openOwnMachine } from '../runbooks/own-machine.ts';
import { rehearse } from '../runbooks/rehearse.ts';
import { type MadeRelease, why } from './made-release.ts';

export function tutorialTests(made: () => MadeRelease): void {
  it.skipIf(NO_OWN_MACHINE !== undefined)(
    `leads to a first signature, word by word${why(NO_OWN_MACHINE)}`,
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sr-tutorial-'));
      const world = await openOwnMachine({ folder, env: {}, values: {}, programs: {} });
      try {
        const { release } = made();
        for (const name of readdirSync(release).filter((file) => /\.tar\.gz$|^SHA256SUMS$/.test(file))) {
          copyFileSync(join(release, name), join(world.folder, name));
        }
        const rehearsed = await rehearse('docs/tutorial/first-signature.md', world);
        expect(rehearsed.filter(({ block }) => block.shown.length > 0).length).toBeGreaterThan(8);
      } finally {
        await world.close();
        rmSync(folder, { recursive: true });
      }
    },
  );
}
