// The release as an OCI image (image-spec 1.1) in one archive. There is no shell and no package manager in it, nothing
// of it has to be writable, and it runs as a user of its own.

import { gzipSync } from 'node:zlib';
import type { Architecture } from '../../eif/format/format.ts';
import { sha256Hex } from '../../eif/measure.ts';
import { type ArchiveEntry, beneath, file } from './archive/entry.ts';
import { writeTar } from './archive/tar.ts';
import { isoTime, type Origin } from './origin.ts';
import {
  AUTHORITIES,
  deploymentEntries,
  INSTALLED,
  LAUNCHER,
  type Parts,
  programEntries,
  runtimeEntries,
} from './tree.ts';

/** eth-docker's, and the one Web3Signer's own image has. */
const IMAGE_USER = 10_000;
const OWNER = { uid: IMAGE_USER, gid: IMAGE_USER };

/** As Go's ports name architectures, which is what the specification wants. */
const OCI_ARCHITECTURE: Readonly<Record<Architecture, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

const MEDIA = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const;

/** Where tools keep keys and data; a volume that is made for a folder of the image takes its owner. */
const WRITABLE = ['data', 'var/lib/strongroom', 'var/lib/web3signer'];

export function writeImageArchive(root: string, parts: Parts, architecture: Architecture, origin: Origin): Buffer {
  const { timeSeconds } = origin;
  const layers = [beneath(INSTALLED, runtimeEntries(parts)), imageEntries(root, parts)].map((entries) => {
    const tar = writeTar(entries, timeSeconds);
    return { diffId: `sha256:${sha256Hex(tar)}`, blob: gzipSync(tar) };
  });
  const configuration = blobOf({
    created: isoTime(origin),
    architecture: OCI_ARCHITECTURE[architecture],
    os: 'linux',
    config: configOf(origin),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: ['Node.js and its libraries', 'strongroom'].map((comment) => ({ created: isoTime(origin), comment })),
  });
  const manifest = blobOf({
    schemaVersion: 2,
    mediaType: MEDIA.manifest,
    config: described(configuration, MEDIA.config),
    layers: layers.map(({ blob }) => described(blob, MEDIA.layer)),
    annotations: annotationsOf(origin),
  });
  const blobs = [...layers.map(({ blob }) => blob), configuration, manifest];
  const entries = [
    file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    file('index.json', json(indexOf(manifest, origin))),
    file('manifest.json', json(dockersList(configuration, layers, origin))),
    ...blobs.map((blob) => file(blobPath(blob), blob)),
  ];
  return writeTar(entries, timeSeconds);
}

function configOf(origin: Origin): object {
  return {
    User: `${IMAGE_USER}:${IMAGE_USER}`,
    ExposedPorts: Object.fromEntries([9000, 9001, 9443, 3000].map((port) => [`${port}/tcp`, {}])),
    // Web3Signer's image listens on all addresses of its container, and tools count on it.
    Env: [`PATH=/${INSTALLED}/bin`, 'WEB3SIGNER_HTTP_LISTEN_HOST=0.0.0.0', 'WEB3SIGNER_METRICS_HOST=0.0.0.0'],
    Entrypoint: [`/${INSTALLED}/${LAUNCHER}`],
    Cmd: ['--help'],
    WorkingDir: '/',
    Labels: annotationsOf(origin),
    StopSignal: 'SIGTERM',
  };
}

function annotationsOf(origin: Origin): Record<string, string> {
  return {
    'org.opencontainers.image.title': 'strongroom',
    'org.opencontainers.image.description': 'Remote signer for Ethereum validator keys',
    'org.opencontainers.image.version': origin.version,
    'org.opencontainers.image.revision': origin.commit,
    'org.opencontainers.image.created': isoTime(origin),
  };
}

/** The program where the package puts it, and the little of a system that it looks at. */
function imageEntries(root: string, parts: Parts): ArchiveEntry[] {
  return [
    ...beneath(INSTALLED, [...programEntries(parts), ...documentEntries(root)]),
    // DAppNode calls the program by this path.
    { type: 'symlink', path: 'opt/web3signer/bin/web3signer', target: `/${INSTALLED}/${LAUNCHER}` },
    { type: 'symlink', path: 'etc/ssl/certs/ca-certificates.crt', target: `/${INSTALLED}/${AUTHORITIES}` },
    file('etc/passwd', `root:x:0:0:root:/:/sbin/nologin\nstrongroom:x:${IMAGE_USER}:${IMAGE_USER}::/:/sbin/nologin\n`),
    file('etc/group', `root:x:0:\nstrongroom:x:${IMAGE_USER}:\n`),
    file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    { type: 'directory', path: 'tmp', mode: 0o1777 },
    ...['dev', 'proc', 'sys'].map((path): ArchiveEntry => ({ type: 'directory', path })),
    ...WRITABLE.map((path): ArchiveEntry => ({ type: 'directory', path, mode: 0o700, owner: OWNER })),
  ];
}

/** What messages name, to be copied out of a container: nothing of it runs there. */
function documentEntries(root: string): ArchiveEntry[] {
  return deploymentEntries(root, new Map()).map((entry) => (entry.type === 'file' ? { ...entry, mode: 0o644 } : entry));
}

function indexOf(manifest: Buffer, { version }: Origin): object {
  const annotations = { 'org.opencontainers.image.ref.name': `strongroom:${version}` };
  return {
    schemaVersion: 2,
    mediaType: MEDIA.index,
    manifests: [{ ...described(manifest, MEDIA.manifest), annotations }],
  };
}

function dockersList(configuration: Buffer, layers: readonly { readonly blob: Buffer }[], { version }: Origin): object {
  return [
    {
      Config: blobPath(configuration),
      RepoTags: [`strongroom:${version}`],
      Layers: layers.map(({ blob }) => blobPath(blob)),
    },
  ];
}

function described(blob: Buffer, mediaType: string): object {
  return { mediaType, digest: `sha256:${sha256Hex(blob)}`, size: blob.length };
}

function blobPath(blob: Buffer): string {
  return `blobs/sha256/${sha256Hex(blob)}`;
}

function blobOf(value: unknown): Buffer {
  return Buffer.from(json(value));
}

function json(value: unknown): string {
  return JSON.stringify(value);
}
