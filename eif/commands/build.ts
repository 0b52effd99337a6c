// `strongroom eif build`: an image and its pcrs.json into a folder. Both appear whole or not at all.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileFault } from '../../common/command-line/file-faults.ts';
import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { command } from '../../common/command-line/program.ts';
import { showProgress } from '../../common/command-line/progress.ts';
import { note, type Printed } from '../../common/command-line/terminal.ts';
import { type Shown, wrapFor } from '../../common/command-line/wrap.ts';
import { VERSION } from '../../signer/api/version.ts';
import { type BuildRequest, type BuiltImage, buildImage } from '../build.ts';
import { sourceCommit } from '../commit.ts';
import { hostArchitecture } from '../host.ts';
import { BuildError, WrongUsage } from '../inputs.ts';
import { json, rows } from './text.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE_FILE = 'image.eif';
const RECORD_FILE = 'pcrs.json';

export const buildCommand = command(
  {
    summary: 'Build an enclave image, and say what will be measured of it',
    usage: ['--image FILE --ceremony FILE (--config FILE | --fetch-config) [OPTIONS]'],
    notes: [
      'Writes image.eif and pcrs.json. The same inputs give the same bytes, on any host of this architecture with the ' +
        'same libraries. Run "make image-parts" first: it compiles the addon and the first process.',
      "The files of packages are compared with the tarballs that the lockfile names, which npm ci leaves in npm's cache, " +
        'and the compiled parts with what their sources compile to. What differs is refused.',
    ],
    flags: {
      image: {
        placeholder: 'FILE',
        required: true,
        meaning: 'The kernel, its command line and its modules, each pinned by SHA-256 (image.yaml)',
      },
      ceremony: {
        placeholder: 'FILE',
        required: true,
        meaning: 'The custody ceremony that is compiled in, or a configuration that has one',
      },
      config: {
        placeholder: 'FILE',
        meaning: "The signer's configuration, baked in: PCR16 is known before the image runs",
      },
      'fetch-config': {
        meaning: 'No configuration in the image: the parent instance gives it at boot, and it is measured then',
      },
      ca: {
        placeholder: 'HOST=FILE',
        repeatable: true,
        meaning: "Certificate authorities, in PEM, that alone vouch for HOST; Amazon's own for every other host",
      },
      'signing-key': {
        placeholder: 'FILE',
        meaning: 'P-384 private key in PEM; with its certificate the image is signed (PCR8)',
      },
      'signing-certificate': { placeholder: 'FILE', meaning: 'The certificate of that key, in PEM' },
      commit: { placeholder: 'HEX', meaning: 'The commit of the sources, where git does not say it' },
      directory: { placeholder: 'FOLDER', meaning: 'Where to write; build/image when not given' },
      ...JSON_OUTPUT,
      json: { meaning: 'Print pcrs.json, not a table' },
    },
    examples: [
      'strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml',
      'strongroom eif build --image image.yaml --ceremony ceremony.yaml --fetch-config --ca db.example.org=ca.pem',
    ],
  },

  async ({ values }, terminal: Printed) => {
    const { stdout } = terminal;
    const folder = values.directory ?? 'build/image';
    const request: BuildRequest = {
      root: ROOT,
      architecture: hostArchitecture(),
      version: VERSION,
      commit: sourceCommit(ROOT, values.commit),
      imageFile: values.image,
      ceremonyFile: values.ceremony,
      configurationFile: configurationOf(values.config, values['fetch-config']),
      authorities: values.ca ?? [],
      signing: signingOf(values['signing-key'], values['signing-certificate']),
    };
    const built = values.json ? await buildImage(request) : await buildWithProgress(request, terminal);
    await writeBoth(folder, built);
    stdout.write(values.json ? json(built.record) : asTable(built, stdout));
    note(terminal, `strongroom: wrote ${join(folder, IMAGE_FILE)} and ${join(folder, RECORD_FILE)}`);
  },
);

async function buildWithProgress(request: BuildRequest, terminal: Printed): Promise<BuiltImage> {
  using progress = showProgress(terminal, { doing: 'reading the inputs' });
  return await buildImage(request, (doing) => progress.begin({ doing }));
}

/** Said either way: an image that fetches because a flag was forgotten would run what its parent likes. */
function configurationOf(file: string | undefined, fetches: boolean): string | undefined {
  if ((file !== undefined) === fetches)
    throw new WrongUsage('say where the configuration comes from: --config FILE, or --fetch-config');
  return file;
}

function signingOf(
  keyFile: string | undefined,
  certificateFile: string | undefined,
): { readonly keyFile: string; readonly certificateFile: string } | undefined {
  if (keyFile === undefined && certificateFile === undefined) return undefined;
  if (keyFile === undefined || certificateFile === undefined)
    throw new WrongUsage('--signing-key and --signing-certificate are given together');
  return { keyFile, certificateFile };
}

/** The record is written last: where there is a record, its image is whole. */
async function writeBoth(folder: string, { image, record }: BuiltImage): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await rm(join(folder, RECORD_FILE), { force: true });
    await writeWhole(join(folder, IMAGE_FILE), image);
    await writeWhole(join(folder, RECORD_FILE), json(record));
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new BuildError(fileFault('path' in error ? String(error.path) : folder, 'written', error));
    throw error;
  }
}

async function writeWhole(file: string, contents: Buffer | string): Promise<void> {
  const beside = `${file}.new`;
  await writeFile(beside, contents, { flush: true });
  await rename(beside, file);
}

const VERIFIED = 'Packages are those of the lockfile';
const UNVERIFIED =
  "Packages NOT compared with the lockfile: npm's cache does not have all their tarballs; rm -rf node_modules && npm ci fetches them";

function asTable({ record }: BuiltImage, stdout: Shown): string {
  const { commit, packages, image, ceremony, configuration, measurements, inputs } = record;
  const lines = [
    `Image for ${image.architecture}, ${image.size} bytes from ${inputs.length} inputs, ${image.signed ? 'signed' : 'not signed'}`,
    `Sources of commit ${commit}`,
    ...wrapFor(stdout, packages === 'verified' ? VERIFIED : UNVERIFIED),
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${ceremony.digest_sha384}`,
    ...wrapFor(
      stdout,
      configuration === 'baked'
        ? 'Configuration baked in'
        : 'Configuration fetched from the parent at boot: PCR16 follows from it, see "strongroom eif describe --config"',
    ),
    '',
    ...rows(Object.entries(measurements)),
  ];
  return `${lines.join('\n')}\n`;
}
