// A release from the sources of one checkout: bundle, collect, write each form of it. The same sources, packages,
// compiler and libraries give the same bytes in any folder. Needs what `make release` compiles first: the addon and the
// launcher.

import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Bundle } from '../eif/bundle/bundle.ts';
import { type CompiledPart, readCompiledPart } from '../eif/bundle/compiled-parts.ts';
import { publicAuthorities } from '../eif/certificates.ts';
import type { Architecture } from '../eif/format/format.ts';
import { findLibraries } from '../eif/libraries.ts';
import { readNode } from '../eif/node-binary.ts';
import { beneath } from './archive/entry.ts';
import { writeTar } from './archive/tar.ts';
import { writeImageArchive } from './image.ts';
import type { Origin } from './origin.ts';
import { bundleRelease } from './program.ts';
import { deploymentEntries, type Parts, programEntries, runtimeEntries } from './tree.ts';

export interface ReleaseRequest {
  /** The project's folder. */
  readonly root: string;
  readonly architecture: Architecture;
  readonly origin: Origin;
}

export interface Artefact {
  readonly name: string;
  readonly data: Buffer;
}

/** release/launcher/launcher.mk */
const LAUNCHER_PART: CompiledPart = {
  path: 'build/launcher/strongroom',
  sources: 'release/launcher',
  what: 'the launcher',
};

/** @throws BuildError */
export async function buildRelease(request: ReleaseRequest): Promise<Artefact[]> {
  const { root, architecture, origin } = request;
  const bundle = await bundleRelease(root, origin);
  const parts = partsOf(request, bundle);
  const name = `strongroom-${origin.version}-linux-${architecture}`;
  return [
    { name: `${name}.tar.gz`, data: tarball(root, parts, name, origin) },
    { name: `${name}.oci.tar`, data: writeImageArchive(parts, architecture, origin) },
  ];
}

function partsOf({ root, architecture }: ReleaseRequest, { files }: Bundle): Parts {
  const node = readNode(root, architecture);
  const addons = files.filter(({ name }) => name.endsWith('.node'));
  const programs = new Map([['node', node.data], ...addons.map(({ name, data }): [string, Buffer] => [name, data])]);
  return {
    launcher: readCompiledPart(root, LAUNCHER_PART),
    bundle: files,
    node: node.data,
    libraries: findLibraries(programs, architecture),
    authorities: publicAuthorities(join(root, node.path)),
    papers: new Map(),
  };
}

function tarball(root: string, parts: Parts, name: string, { timeSeconds }: Origin): Buffer {
  const entries = [...runtimeEntries(parts), ...programEntries(parts), ...deploymentEntries(root)];
  return gzipSync(writeTar(beneath(name, entries), { timeSeconds }));
}
