// A release from the sources of one checkout. The same sources, packages, compiler, libraries and dpkg give the same
// bytes in any folder. Needs what `make release` compiles first: the addon and the launcher.

import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { completionScript, type Shell } from '../../common/command-line/completion.ts';
import { buildImage } from '../../eif/build.ts';
import { type Bundle, bundleProgram, esbuildVersion, type InPlace } from '../../eif/bundle/bundle.ts';
import { ADDON, type CompiledPart, readCompiledPart } from '../../eif/bundle/compiled-parts.ts';
import { publicAuthorities } from '../../eif/certificates.ts';
import { json } from '../../eif/commands/text.ts';
import type { Architecture } from '../../eif/format/format.ts';
import { type Input, inputOf, readImageInput, sortedInputs } from '../../eif/inputs.ts';
import { findLibraries } from '../../eif/libraries.ts';
import { sha256Hex } from '../../eif/measure.ts';
import { readNode } from '../../eif/node-binary.ts';
import { described } from './absent/described.ts';
import { beneath } from './archive/entry.ts';
import { writeTar } from './archive/tar.ts';
import { writeImageArchive } from './image.ts';
import { manPages } from './manual.ts';
import { isoTime, type Origin } from './origin.ts';
import { DEBIAN_ARCHITECTURE, dpkgVersion, writePackage } from './package.ts';
import { sortedComponents } from './papers/component.ts';
import { packagesOf, writeNotice } from './papers/packages.ts';
import { librariesOf, nodeOf } from './papers/runtime.ts';
import { writeSbom } from './papers/sbom.ts';
import { readTriage, writeVex } from './papers/vex.ts';
import { deploymentEntries, type Parts, programEntries, runtimeEntries } from './tree.ts';

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
  const facts = {
    origin,
    architecture,
    inputs: inputsOf(request, parts),
    tools: { esbuild: esbuildVersion, dpkg: dpkgVersion() },
  };
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
    vex: writeVex(readTriage(readImageInput(join(root, TRIAGE), 'the triage').toString('utf8')), components, origin),
    typed,
  };
}

function inputsOf({ root, architecture }: ReleaseRequest, { launcher, node, libraries }: Parts): Input[] {
  const lockfile = readImageInput(join(root, LOCKFILE), 'the lockfile');
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
  return gzipSync(writeTar(beneath(name, entries), timeSeconds));
}

// The program of a release: all commands of bin/strongroom.ts, bundled as the signer of an image is. What needs the
// sources is left out and says so (tools/release/absent/): building images, and the rehearsal with its stand-ins.

const ENTRY = 'import "./bin/strongroom.ts";\n';

function bundleRelease(root: string, { commit }: Origin): Promise<Bundle> {
  const inPlaceOf = new Map<string, InPlace>([
    ['signer/api/commit.ts', { text: `export const COMMIT: string = ${JSON.stringify(commit)};\n` }],
    ['bin/described.ts', { source: 'tools/release/absent/described.ts' }],
    ['eif/commands/build.ts', { source: 'tools/release/absent/image-build.ts' }],
    ['rehearsal/rehearse.ts', { source: 'tools/release/absent/rehearsal.ts' }],
  ]);
  return bundleProgram(root, { entry: ENTRY, inPlaceOf });
}

// What helps people to type commands: manual pages and completion scripts, from what the programs of a release say of
// themselves, so that they offer nothing that a release does not have. Paths are those beneath /usr.

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: 'share/bash-completion/completions/strongroom',
  zsh: 'share/zsh/vendor-completions/_strongroom',
  fish: 'share/fish/vendor_completions.d/strongroom.fish',
};

const DATE = /^\d{4}-\d{2}-\d{2}/;

/** By their paths. */
async function typedFiles(origin: Origin): Promise<ReadonlyMap<string, string>> {
  const everything = await described();
  const [date = ''] = DATE.exec(isoTime(origin)) ?? [];
  const manuals = manPages(everything, { version: origin.version, date });
  const scripts = Object.entries(SCRIPTS) as [Shell, string][];
  return new Map([
    ...manuals.map(({ name, text }): [string, string] => [`share/man/man1/${name}`, text]),
    ...scripts.map(([shell, path]): [string, string] => [path, completionScript(shell, everything)]),
  ]);
}

// How the files of a release came to be: an in-toto statement (v1) with SLSA's provenance (v1) of the build. The
// publisher signs the list of all files, which names it (docs/guides/install.md). What anybody can do without a
// signature is to build again and compare.

interface Named {
  readonly name: string;
  readonly data: Buffer;
}

/** What `make release` is, for readers: its parameters are the commit, the architecture and the time. */
const BUILD_TYPE = 'urn:strongroom:make-release:1';
/** Whoever ran make: a builder that vouches for nothing. */
const BUILDER = 'urn:strongroom:builder:make';

interface Facts {
  readonly origin: Origin;
  readonly architecture: string;
  readonly inputs: readonly Input[];
  readonly tools: Readonly<Record<string, string>>;
}

function writeProvenance(files: readonly Named[], { origin, architecture, inputs, tools }: Facts): Buffer {
  const source = /^[0-9a-f]{40}$/.test(origin.commit) ? [{ name: 'source', digest: { gitCommit: origin.commit } }] : [];
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map(({ name, data }) => ({ name, digest: { sha256: sha256Hex(data) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { commit: origin.commit, architecture, sourceDateEpoch: origin.timeSeconds },
        internalParameters: { version: origin.version, tools },
        resolvedDependencies: [...source, ...inputs.map(({ path, sha256 }) => ({ name: path, digest: { sha256 } }))],
      },
      // Without the time of the build: two builds of the same sources are the same bytes.
      runDetails: { builder: { id: BUILDER } },
    },
  };
  return Buffer.from(`${JSON.stringify(statement, undefined, 2)}\n`);
}
