// The program of a release: all commands of bin/strongroom.ts, bundled as the signer of an image is. What needs the
// sources is left out and says so (release/absent/): building images, and the rehearsal with its stand-ins.

import { type Bundle, bundleProgram, type InPlace } from '../eif/bundle/bundle.ts';
import type { Origin } from './origin.ts';

const ENTRY = 'import "./bin/strongroom.ts";\n';

/** @throws BuildError */
export function bundleRelease(root: string, { commit }: Origin): Promise<Bundle> {
  const inPlaceOf = new Map<string, InPlace>([
    ['enclave/api/commit.ts', { text: `export const COMMIT: string = ${JSON.stringify(commit)};\n` }],
    ['bin/described.ts', { source: 'release/absent/described.ts' }],
    ['eif/commands/build.ts', { source: 'release/absent/image-build.ts' }],
    ['eif/descriptions/build.ts', { source: 'release/absent/image-build-description.ts' }],
    ['rehearsal/rehearse.ts', { source: 'release/absent/rehearsal.ts' }],
  ]);
  return bundleProgram(root, { entry: ENTRY, inPlaceOf });
}
