// The host that builds: what is compiled, the libraries and Node.js are its own, so it builds for itself.

import type { Architecture } from './format/format.ts';
import { BuildError } from './inputs.ts';

export function hostArchitecture(): Architecture {
  if (process.platform === 'linux' && process.arch === 'x64') return 'x86_64';
  if (process.platform === 'linux' && process.arch === 'arm64') return 'aarch64';
  throw new BuildError(
    `images are built on Linux, on the architecture they are for; this is ${process.platform} ${process.arch}`,
  );
}
