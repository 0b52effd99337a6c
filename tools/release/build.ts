// A release from the sources of one checkout. The same sources, packages, compiler and libraries give the same bytes in
// any folder. Needs what `make release` compiles first: the addon and the launcher.

import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildImage } from '../../eif/build.ts';
import { type Bundle, esbuildVersion } from '../../eif/bundle/bundle.ts';
import { ADDON, type CompiledPart, readCompiledPart } from '../../eif/bundle/compiled-parts.ts';
import { publicAuthorities } from '../../eif/certificates.ts';
import { json } from '../../eif/commands/text.ts';
import type { Architecture } from '../../eif/format/format.ts';
import { type Input, inputOf, readInput, sortedInputs } from '../../eif/inputs.ts';
import { findLibraries } from '../../eif/libraries.ts';
import { readNode } from '../../eif/node-binary.ts';
import { beneath } from './archive/entry.ts';
import { writeTar } from './archive/tar.ts';
import { writeImageArchive } from './image.ts';
import type { Origin } from './origin.ts';
import { DEBIAN_ARCHITECTURE, writePackage } from './package.ts';
import { sortedComponents } from './papers/component.ts';
import { writeNotice } from './papers/notice.ts';
import { packagesOf } from './papers/packages.ts';
import { writeProvenance } from './papers/provenance.ts';
import { librariesOf, nodeOf } from './papers/runtime.ts';
import { writeSbom } from './papers/sbom.ts';
import { readTriage, writeVex } from './papers/vex.ts';
import { bundleRelease } from './program.ts';
import { deploymentEntries, type Parts, programEntries, runtimeEntries } from './tree.ts';
import { typedFiles } from './typed.ts';

export interface ReleaseRequest {
  readonly root: string;
  readonly architecture: Architecture;
  readonly origin: Origin;
  /** An image.yaml, for the measurements of the example image on its kernel. */
  readonly image: string | undefined;
}

export interface Artefact {
  readonly name: string;
  readonly data: Buffer;
}

const LOCKFILE = 'package-lock.json';
const PROVENANCE = 'provenance.json';
const VEX = 'openvex.json';
const TRIAGE = 'tools/release/papers/triage.yaml';
const EXAMPLES = { ceremony: 'docs/examples/ceremony.yaml', configuration: 'docs/examples/enclave.yaml' } as const;

const LAUNCHER_PART: CompiledPart = {
  path: 'build/launcher/strongroom',
  sources: 'tools/release/launcher',
  what: 'the launcher',
  target: 'release',
};

export async function buildRelease(request: ReleaseRequest): Promise<Artefact[]> {
  const { root, architecture, origin, image } = request;
  const bundle = await bundleRelease(root, origin);
  const parts = partsOf(request, bundle, await typedFiles(origin));
  const name = `strongroom-${origin.version}-linux-${architecture}`;
  const packageName = `strongroom_${origin.version}_${DEBIAN_ARCHITECTURE[architecture]}.deb`;
  const artefacts = [
    { name: `${name}.tar.gz`, data: tarball(root, parts, name, origin) },
    { name: packageName, data: writePackage(root, parts, architecture, origin) },
    { name: `${name}.oci.tar`, data: writeImageArchive(root, parts, architecture, origin) },
    ...[...parts.papers].map(([paper, data]) => ({ name: paper, data })),
    ...(parts.vex === undefined ? [] : [{ name: VEX, data: parts.vex }]),
    ...(image === undefined ? [] : [{ name: 'pcrs.json', data: await measurementsOf(request, image) }]),
  ];
  const facts = { origin, architecture, inputs: inputsOf(request, parts), tools: { esbuild: esbuildVersion } };
  return [...artefacts, { name: PROVENANCE, data: writeProvenance(artefacts, facts) }];
}

function partsOf(
  { root, architecture, origin }: ReleaseRequest,
  { files, inputs }: Bundle,
  typed: ReadonlyMap<string, string>,
): Parts {
  const node = readNode(root, architecture);
  const addons = files.filter(({ name }) => name.endsWith('.node'));
  const programs = new Map([['node', node.data], ...addons.map(({ name, data }): [string, Buffer] => [name, data])]);
  const libraries = findLibraries(programs, architecture);
  const components = sortedComponents([...packagesOf(root, inputs), ...nodeOf(root, node), ...librariesOf(libraries)]);
  return {
    launcher: readCompiledPart(root, LAUNCHER_PART),
    bundle: files,
    node: node.data,
    libraries,
    authorities: publicAuthorities(join(root, node.path)),
    papers: new Map([
      ['NOTICE', writeNotice(components)],
      ['sbom.cdx.json', writeSbom(components, origin)],
    ]),
    vex: writeVex(readTriage(readInput(join(root, TRIAGE), 'the triage').toString('utf8')), components, origin),
    typed,
  };
}

function inputsOf({ root, architecture }: ReleaseRequest, { launcher, node, libraries }: Parts): Input[] {
  const lockfile = readInput(join(root, LOCKFILE), 'the lockfile');
  return sortedInputs([
    inputOf(LOCKFILE, lockfile),
    inputOf(readNode(root, architecture).path, node),
    inputOf(ADDON.path, readCompiledPart(root, ADDON)),
    inputOf(LAUNCHER_PART.path, launcher),
    ...libraries.map(({ path, data }) => inputOf(path, data)),
  ]);
}

/** The record of an image of the examples on the given kernel; the image itself is for whoever has keys to name. */
async function measurementsOf({ root, architecture, origin }: ReleaseRequest, imageFile: string): Promise<Buffer> {
  const { record } = await buildImage({
    root,
    architecture,
    version: origin.version,
    commit: origin.commit,
    imageFile,
    ceremonyFile: join(root, EXAMPLES.ceremony),
    configurationFile: join(root, EXAMPLES.configuration),
    authorities: [],
    signing: undefined,
  });
  return Buffer.from(json(record));
}

function tarball(root: string, parts: Parts, name: string, { timeSeconds }: Origin): Buffer {
  const entries = [...runtimeEntries(parts), ...programEntries(parts), ...deploymentEntries(root, parts.typed)];
  return gzipSync(writeTar(beneath(name, entries), { timeSeconds }));
}
