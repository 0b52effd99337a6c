// The files of a release, beneath one folder, wherever that is put: the program, the Node.js and the libraries it runs
// on, and what goes with it. No sources, no tests, no packages in folders of their own.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { BundleFile } from '../eif/bundle/bundle.ts';
import type { Library } from '../eif/libraries.ts';
import { type ArchiveEntry, file } from './archive/entry.ts';

export interface Parts {
  readonly launcher: Buffer;
  readonly bundle: readonly BundleFile[];
  readonly node: Buffer;
  readonly libraries: readonly Library[];
  /** PEM. */
  readonly authorities: Buffer;
  /** What says what is in it, by the names of the files. */
  readonly papers: ReadonlyMap<string, Buffer>;
}

const EXECUTABLE = 0o755;
/** Relative to the tree. */
export const LAUNCHER = 'bin/strongroom';
export const AUTHORITIES = 'share/ca-certificates.crt';
/** Where the units say that it lies (parent-proxy/deploy, release/systemd). */
export const INSTALLED = 'opt/strongroom';

/** Relative to the project. */
export const SERVICE_UNIT = 'release/systemd/strongroom.service';
/** Relative to the project, and in the same place beneath the tree. */
const TAKEN_AS_THEY_ARE: readonly (readonly [string, number])[] = [
  ['docs/examples/ceremony.yaml', 0o644],
  ['docs/examples/enclave.yaml', 0o644],
  ['docs/examples/strongroom.yaml', 0o644],
  ['docs/guides/install.md', 0o644],
  ['parent-proxy/deploy/README.md', 0o644],
  ['parent-proxy/deploy/allocator.yaml', 0o644],
  ['parent-proxy/deploy/enclave.env', 0o644],
  ['parent-proxy/deploy/metadata.nft', 0o644],
  ['parent-proxy/deploy/nitro-cli.logrotate', 0o644],
  ['parent-proxy/deploy/run-enclave', EXECUTABLE],
  ['parent-proxy/deploy/strongroom-enclave.service', 0o644],
  ['parent-proxy/deploy/strongroom-metadata.service', 0o644],
  ['parent-proxy/deploy/strongroom-parent-proxy.service', 0o644],
];

/** Node.js, its loader and its libraries: they change seldom. */
export function runtimeEntries({ node, libraries }: Parts): ArchiveEntry[] {
  return [
    file('runtime/node', node, EXECUTABLE),
    ...libraries.map(({ path, data }) => file(`runtime/${basename(path)}`, data, EXECUTABLE)),
  ];
}

export function programEntries({ launcher, bundle, authorities, papers }: Parts): ArchiveEntry[] {
  return [
    file(LAUNCHER, launcher, EXECUTABLE),
    ...bundle.map(({ name, data }) => file(`app/${name}`, data)),
    file(AUTHORITIES, authorities),
    ...[...papers].map(([name, data]) => file(name, data)),
  ];
}

/** For those who install it on a machine of their own: units, settings, examples. */
export function deploymentEntries(root: string): ArchiveEntry[] {
  return [
    ...TAKEN_AS_THEY_ARE.map(([path, mode]) => file(path, readFileSync(join(root, path)), mode)),
    file('systemd/strongroom.service', readFileSync(join(root, SERVICE_UNIT))),
  ];
}
