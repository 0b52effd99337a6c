// The files of a release, beneath one folder, wherever that is put: the program, the Node.js and the libraries it runs
// on, and what goes with it. No sources, no tests, no packages in folders of their own.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { BundleFile } from '../../eif/bundle/bundle.ts';
import type { Library } from '../../eif/libraries.ts';
import { type ArchiveEntry, file } from './archive/entry.ts';

export interface Parts {
  readonly launcher: Buffer;
  readonly bundle: readonly BundleFile[];
  readonly node: Buffer;
  readonly libraries: readonly Library[];
  readonly authorities: Buffer;
  /** What says what is in it, by the names of the files. */
  readonly papers: ReadonlyMap<string, Buffer>;
  /** Beside the forms of the release, not in them: scanners take a newer one, too. */
  readonly vex: Buffer | undefined;
  /** Manual pages and completion scripts, by their paths. */
  readonly typed: ReadonlyMap<string, string>;
}

const EXECUTABLE = 0o755;
export const LAUNCHER = 'bin/strongroom';
export const AUTHORITIES = 'share/ca-certificates.crt';
/** Where the units say that it lies (parent-proxy/deploy, tools/release/systemd). */
export const INSTALLED = 'opt/strongroom';

export const SERVICE_UNIT = 'tools/release/systemd/strongroom.service';
/**
 * Which files of which folders are taken, in the same place beneath the tree: those of git, by a test. What people put
 * beside them (secrets and keys of deploy/compose, the state of Terraform) has no such name.
 */
const TAKEN: readonly (readonly [folder: string, names: RegExp])[] = [
  ['.', /^(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/],
  ['docs', /\.(?:md|svg)$/],
  ['docs/decisions', /\.md$/],
  ['docs/examples', /\.(?:yaml|py|txt)$/],
  ['docs/images', /\.(?:svg|png)$/],
  ...['guides', 'reference', 'runbooks', 'specification', 'tutorial'].map((name) => [`docs/${name}`, /\.md$/] as const),
  ['deploy/compose', /^(?:compose\.yaml|grants\.sql|make-secrets|roles\.sql|strongroom\.yaml)$/],
  ['deploy/grafana', /^strongroom\.json$/],
  ['deploy/helm/strongroom', /^(?:Chart\.yaml|values\.yaml|values\.schema\.json)$/],
  ['deploy/helm/strongroom/templates', /\.yaml$/],
  ['deploy/prometheus', /^(?:prometheus|strongroom\.rules|strongroom\.tests)\.yaml$/],
  ['deploy/terraform', /^README\.md$/],
  ...['custody-key', 'example', 'signer', 'signer/policies'].map(
    (name) => [`deploy/terraform/${name}`, /\.(?:tf|tftpl)$/] as const,
  ),
  ['parent-proxy/deploy', /^[a-z-]+(?:\.(?:yaml|env|nft|logrotate|service))?$|^README\.md$/],
];

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

/** For those who install it on a machine of their own: documents, units, settings, examples. */
export function deploymentEntries(root: string, typed: Parts['typed']): ArchiveEntry[] {
  const paths = TAKEN.flatMap(([folder, names]) =>
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isFile() && names.test(entry.name))
      .map(({ name }) => join(folder, name)),
  );
  const taken = new Set(paths);
  return [
    ...paths.map((path) => {
      const data = readFileSync(join(root, path));
      const isProgram = data.subarray(0, 2).toString('latin1') === '#!';
      return file(
        path,
        path.endsWith('.md') ? withoutDeadLinks(path, data, taken) : data,
        isProgram ? EXECUTABLE : 0o644,
      );
    }),
    ...[...typed].map(([path, text]) => file(path, text)),
    file('systemd/strongroom.service', readFileSync(join(root, SERVICE_UNIT))),
  ];
}

/** A link to a source, which only a checkout has, becomes its words. */
function withoutDeadLinks(page: string, data: Buffer, taken: ReadonlySet<string>): string {
  return data.toString('utf8').replaceAll(LINK, (link: string, words: string, target: string) => {
    const path = join(dirname(page), target);
    const isThere = [...taken].some((other) => other === path || other.startsWith(`${path}/`));
    return isThere || /^[a-z]+:/.test(target) ? link : words;
  });
}

/** Its words, its target, its section. */
const LINK = /\[([^\]]+)\]\(([^()#\s]+)(?:#[^()\s]*)?\)/g;
