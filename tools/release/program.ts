// The program of a release: all commands of bin/strongroom.ts, bundled as the signer of an image is. What needs the
// sources is left out and says so (tools/release/absent/): building images, and the rehearsal with its stand-ins.

import { type Bundle, bundleProgram, type InPlace } from '../../eif/bundle/bundle.ts';
import type { Origin } from './origin.ts';

const ENTRY = 'import "./bin/strongroom.ts";\n';

export function bundleRelease(root: string, { commit }: Origin): Promise<Bundle> {
  const inPlaceOf = new Map<string, InPlace>([
    ['signer/api/commit.ts', { text: `export const COMMIT: string = ${JSON.stringify(commit)};\n` }],
    ['bin/described.ts', { source: 'tools/release/absent/described.ts' }],
    ['eif/commands/build.ts', { source: 'tools/release/absent/image-build.ts' }],
    ['tools/rehearsal/rehearse.ts', { source: 'tools/release/absent/rehearsal.ts' }],
  ]);
  return bundleProgram(root, { entry: ENTRY, inPlaceOf });
}
