// One image from its inputs. The same inputs give the same image, byte for byte; only a signature differs each time
// (ECDSA), and no measurement covers it.

import { hash } from 'node:crypto';
import { basename, join } from 'node:path';
import { type Ceremony, ceremonyDigest, InvalidCeremony, parseCeremony } from '../ceremony/definition.ts';
import { readCeremonyValue } from '../ceremony/yaml.ts';
import { type Bundle, bundleCheck, bundleSigner, esbuildVersion, ownSources } from './bundle/bundle.ts';
import { writeCompiledModule } from './bundle/compiled-module.ts';
import { holdCompiledParts, INIT, readCompiledPart } from './bundle/compiled-parts.ts';
import { caBundle, type GivenAuthorities, readAuthorities } from './certificates.ts';
import { checkConfiguration, type NamedConfiguration } from './check-configuration.ts';
import { writeCpio } from './format/cpio.ts';
import { type Architecture, type EnclaveImage, writeImage } from './format/format.ts';
import { type ImageParts, readImageFile } from './format/image-file.ts';
import { type ImageSigner, ImageSignerError, readSigner, signImage } from './format/signature.ts';
import { BuildError, type Input, inputOf, readImageInput, sortedInputs } from './inputs.ts';
import { findLibraries } from './libraries.ts';
import { measureImage, sha256Hex } from './measure.ts';
import { PINNED_NODE, readNode } from './node-binary.ts';
import { type HeldPackages, holdPackages } from './packages.ts';
import { applicationRamdisk, checkDisjoint, initRamdisk } from './ramdisks.ts';
import type { ImageRecord } from './record.ts';

export interface BuildRequest {
  readonly root: string;
  readonly architecture: Architecture;
  readonly version: string;
  readonly commit: string;
  readonly imageFile: string;
  readonly ceremonyFile: string;
  /** undefined: the signer fetches its configuration from the parent. */
  readonly configurationFile: string | undefined;
  readonly authorities: readonly string[];
  readonly signing: { readonly keyFile: string; readonly certificateFile: string } | undefined;
}

export interface BuiltImage {
  readonly image: Buffer;
  readonly record: ImageRecord;
}

/** `MAX_CONFIGURATION_BYTES` of signer/api/parent-ports.ts. */
const MAX_CONFIGURATION_BYTES = 1024 * 1024;

/** @param at is told which part of the work begins @throws BuildError */
export async function buildImage(
  request: BuildRequest,
  at: (doing: string) => void = () => undefined,
): Promise<BuiltImage> {
  const { root, architecture, version } = request;
  const parts = readImageFile(request.imageFile, architecture);
  const given = readBuildInputs(request);
  const init = readCompiledPart(root, INIT);
  const node = readNode(root, architecture);
  const amazonRoots = caBundle(join(root, node.path));
  at('bundling the signer');
  const bundle = await bundleSigner(root);
  const compiled = writeCompiledModule({
    ceremony: given.ceremony,
    configuration: given.source,
    authorities: given.authorities.byHost,
  });
  at('checking the configuration with the bundle');
  const check = await bundleCheck(root);
  await checkConfiguration(
    { node: join(root, node.path), bundle: check.files, compiled },
    namedConfiguration(request, given),
  );
  at('putting the image together');
  const libraries = findLibraries(programsOf(bundle, node.data, init), architecture);
  const system = initRamdisk({ init, modules: parts.modules });
  const application = applicationRamdisk({
    bundle: bundle.files,
    sources: ownSources(bundle),
    compiled,
    node: node.data,
    libraries,
    caBundle: amazonRoots,
    configuration: given.configuration,
  });
  checkDisjoint(system, application);
  const image = imageOf(parts, { architecture, version, ramdisks: [writeCpio(system), writeCpio(application)] });
  const inputs = [
    ...parts.inputs,
    ...given.inputs,
    ...bundle.inputs,
    inputOf(INIT.path, init),
    inputOf(node.path, node.data),
    ...libraries.map(({ path, data }) => inputOf(path, data)),
  ];
  at('comparing the packages with their tarballs');
  const held = holdPackages(root, bundle.inputs);
  at('compiling the addon and the first process again');
  await holdCompiledParts(root);
  at('measuring the image');
  return finish(request, image, given, { inputs: sortedInputs(inputs), held });
}

function namedConfiguration(
  { configurationFile }: BuildRequest,
  { configuration }: BuildInputs,
): NamedConfiguration | undefined {
  if (configurationFile === undefined || configuration === undefined) return undefined;
  return { name: basename(configurationFile), bytes: configuration };
}

interface Taken {
  readonly inputs: readonly Input[];
  readonly held: HeldPackages;
}

function finish(
  request: BuildRequest,
  unsigned: EnclaveImage,
  given: BuildInputs,
  { inputs, held }: Taken,
): BuiltImage {
  const { signer, ceremony, configuration } = given;
  const digest = ceremonyDigest(ceremony);
  const measurements = measureImage(unsigned, {
    configuration,
    ceremonyDigest: digest,
    signingCertificate: signer?.certificate.raw,
  });
  const signature =
    signer === undefined ? undefined : signImage(Buffer.from(measurements['PCR0'] ?? '', 'hex'), signer);
  const image = writeImage({ ...unsigned, signature });
  const { architecture, version } = request;
  return {
    image,
    record: {
      commit: request.commit,
      packages: held.unverified.length === 0 ? 'verified' : 'unverified',
      measurements,
      image: { sha256: sha256Hex(image), size: image.length, architecture, signed: signer !== undefined },
      ceremony: { generation: ceremony.generation, digest_sha384: digest.toString('hex') },
      configuration: given.source,
      configuration_digest_sha384: configuration === undefined ? null : hash('sha384', configuration, 'hex'),
      tool: { strongroom: version, node: PINNED_NODE[architecture].version, esbuild: esbuildVersion },
      inputs,
    },
  };
}

interface BuildInputs {
  readonly ceremony: Ceremony;
  readonly configuration: Buffer | undefined;
  readonly source: 'baked' | 'fetched';
  readonly authorities: GivenAuthorities;
  readonly signer: ImageSigner | undefined;
  readonly inputs: readonly Input[];
}

/** The record names files without their folders: these differ between build hosts, and say nothing of the image. */
function readBuildInputs({ ceremonyFile, configurationFile, authorities: hosts, signing }: BuildRequest): BuildInputs {
  const ceremonyText = readImageInput(ceremonyFile, 'the ceremony');
  const configuration = configurationFile === undefined ? undefined : readConfiguration(configurationFile);
  const authorities = readAuthorities(hosts);
  return {
    ceremony: parsedCeremony(ceremonyFile, ceremonyText),
    configuration,
    source: configuration === undefined ? 'fetched' : 'baked',
    authorities,
    signer: signing === undefined ? undefined : signerOf(signing),
    inputs: [
      inputOf(basename(ceremonyFile), ceremonyText),
      ...(configuration === undefined ? [] : [inputOf(basename(configurationFile ?? ''), configuration)]),
      ...[...authorities.files].map(([name, bytes]) => inputOf(name, bytes)),
    ],
  };
}

function readConfiguration(file: string): Buffer {
  const bytes = readImageInput(file, 'the configuration');
  if (bytes.length === 0) throw new BuildError(`the configuration ${file} is empty`);
  if (bytes.length > MAX_CONFIGURATION_BYTES)
    throw new BuildError(`the configuration ${file} is over ${MAX_CONFIGURATION_BYTES} bytes`);
  return bytes;
}

function parsedCeremony(file: string, text: Buffer): Ceremony {
  try {
    return parseCeremony(readCeremonyValue(text.toString('utf8')));
  } catch (error) {
    const problems =
      error instanceof InvalidCeremony ? error.problems : [error instanceof Error ? error.message : String(error)];
    throw new BuildError(`the ceremony ${file} is not valid`, problems);
  }
}

function signerOf({ keyFile, certificateFile }: NonNullable<BuildRequest['signing']>): ImageSigner {
  const key = readImageInput(keyFile, 'the signing key');
  try {
    return readSigner(key, readImageInput(certificateFile, 'the signing certificate'));
  } catch (error) {
    if (error instanceof ImageSignerError) throw new BuildError(error.message);
    throw error;
  } finally {
    key.fill(0);
  }
}

function programsOf(bundle: Bundle, node: Buffer, init: Buffer): ReadonlyMap<string, Buffer> {
  const addons = bundle.files.filter(({ name }) => name.endsWith('.node'));
  return new Map([['node', node], ['init', init], ...addons.map(({ name, data }): [string, Buffer] => [name, data])]);
}

function imageOf(
  { name, kernel, cmdline, defaultMemoryBytes, defaultCpus }: ImageParts,
  { architecture, version, ramdisks }: { architecture: Architecture; version: string; ramdisks: readonly Buffer[] },
): EnclaveImage {
  return {
    architecture,
    defaultMemoryBytes,
    defaultCpus,
    kernel,
    cmdline: Buffer.from(cmdline, 'ascii'),
    ramdisks,
    metadata: metadataOf(name, version),
    signature: undefined,
  };
}

// The metadata section, with AWS's own member names. Not measured; nothing of when or where the image was built.

/** The time is the epoch: the section has to have one. */
const BUILD_TIME = '1970-01-01T00:00:00+00:00';

function metadataOf(name: string, version: string): Buffer {
  const metadata = {
    ImageName: name,
    ImageVersion: version,
    BuildMetadata: {
      BuildTime: BUILD_TIME,
      BuildTool: 'strongroom eif',
      BuildToolVersion: version,
      OperatingSystem: 'Linux',
      KernelVersion: 'as pinned in pcrs.json',
    },
    DockerInfo: {},
    CustomMetadata: {},
  };
  return Buffer.from(JSON.stringify(metadata));
}
