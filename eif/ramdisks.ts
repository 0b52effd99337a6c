// What lies where in the two ramdisks (specification/image.md#ramdisks). The kernel unpacks both into one tree, so no
// file may be in both.

import type { BundleFile } from './bundle/bundle.ts';
import { COMPILED_FILE, CONFIGURATION_PATH } from './bundle/compiled-module.ts';
import type { CpioEntry } from './format/cpio.ts';
import type { KernelModule } from './format/image-file.ts';
import { BuildError, type Input } from './inputs.ts';
import type { Library } from './libraries.ts';

/** Where eif/init/ looks; its sources name the same paths. */
const MODULES_FOLDER = 'lib/modules/strongroom';
const MODULES_LIST = 'etc/strongroom/modules';
const NODE = 'usr/bin/node';
const APPLICATION_FOLDER = 'app';
const CA_BUNDLE = 'etc/ssl/certs/ca-bundle.pem';

export const COMPILED_PATH = `${APPLICATION_FOLDER}/${COMPILED_FILE}`;
export const SOURCES_PATH = `${APPLICATION_FOLDER}/sources.txt`;
export const BAKED_PATH = CONFIGURATION_PATH.slice(1);

interface InitContents {
  readonly init: Buffer;
  readonly modules: readonly KernelModule[];
}

interface ApplicationContents {
  readonly bundle: readonly BundleFile[];
  readonly sources: readonly Input[];
  readonly compiled: Buffer;
  readonly node: Buffer;
  readonly libraries: readonly Library[];
  readonly caBundle: Buffer;
  readonly configuration: Buffer | undefined;
}

export function initRamdisk({ init, modules }: InitContents): CpioEntry[] {
  const mountPoints = ['dev', 'proc', 'sys', 'tmp', 'run'];
  return [
    ...mountPoints.map((path): CpioEntry => ({ type: 'directory', path })),
    // The kernel opens it for init before anything is mounted.
    { type: 'character-device', path: 'dev/console', major: 5, minor: 1 },
    executable('init', init),
    file(MODULES_LIST, modules.map(({ name }) => `/${MODULES_FOLDER}/${name}\n`).join('')),
    ...modules.map(({ name, data }) => file(`${MODULES_FOLDER}/${name}`, data)),
  ];
}

export function applicationRamdisk(contents: ApplicationContents): CpioEntry[] {
  const { bundle, sources, compiled, node, libraries, caBundle, configuration } = contents;
  return [
    ...bundle.map(({ name, data }) => file(`${APPLICATION_FOLDER}/${name}`, data)),
    file(COMPILED_PATH, compiled),
    file(SOURCES_PATH, sources.map(({ sha256, path }) => `${sha256}  ${path}\n`).join('')),
    executable(NODE, node),
    ...libraries.map(({ path, data }) => executable(path.slice(1), data)),
    file(CA_BUNDLE, caBundle),
    file('etc/passwd', 'root:x:0:0:root:/:/sbin/nologin\n'),
    file('etc/group', 'root:x:0:\n'),
    // Names come from the file that the signer writes from its egress endpoints, and from nowhere else.
    file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files\n'),
    file('etc/hosts', ''),
    ...(configuration === undefined ? [] : [file(BAKED_PATH, configuration)]),
  ];
}

/** @throws BuildError when one file is in both */
export function checkDisjoint(first: readonly CpioEntry[], second: readonly CpioEntry[]): void {
  const paths = new Set(first.filter(({ type }) => type !== 'directory').map(({ path }) => path));
  const both = second.filter(({ type, path }) => type !== 'directory' && paths.has(path));
  if (both.length > 0)
    throw new BuildError(
      'files are in both ramdisks',
      both.map(({ path }) => path),
    );
}

function file(path: string, contents: Buffer | string): CpioEntry {
  return { type: 'file', path, data: Buffer.from(contents), mode: 0o644 };
}

function executable(path: string, data: Buffer): CpioEntry {
  return { type: 'file', path, data, mode: 0o755 };
}
