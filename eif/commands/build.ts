// `strongroom eif build`: an image and its pcrs.json into a folder. Both appear whole or not at all.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../../enclave/api/version.ts';
import { type BuiltImage, buildImage } from '../build.ts';
import { hostArchitecture } from '../host.ts';
import { BuildError } from '../inputs.ts';
import { type Arguments, type Command, json, outputOf, readArguments, rows } from './command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE_FILE = 'image.eif';
const RECORD_FILE = 'pcrs.json';

export const buildCommand: Command = {
  help: `Build an enclave image, and say what will be measured of it

Usage: strongroom eif build --image FILE --ceremony FILE (--config FILE | --fetch-config) [OPTIONS]

Writes image.eif and pcrs.json. The same inputs give the same bytes, on any host of this architecture with the same libraries.

Options:
  --image FILE                The kernel, its command line and its modules, each pinned by SHA-256 (image.yaml)
  --ceremony FILE             The custody ceremony that is compiled in, or a configuration that has one
  --config FILE               The signer's configuration, baked in: PCR16 is known before the image runs
  --fetch-config              No configuration in the image: the parent instance gives it at boot, and it is measured then
  --ca FILE                   Certificate authorities to trust beside Amazon's own, in PEM (repeatable)
  --signing-key FILE          P-384 private key in PEM; with its certificate the image is signed (PCR8)
  --signing-certificate FILE  The certificate of that key, in PEM
  --directory FOLDER          Where to write (default: build/image)
  --output table|json         What to print (default: table); json prints pcrs.json

Run "make image-parts" first: it compiles the addon and the first process.

Examples:
  strongroom eif build --image image.yaml --ceremony ceremony.yaml --config strongroom.yaml
  strongroom eif build --image image.yaml --ceremony ceremony.yaml --fetch-config --ca rds-ca.pem --directory out
`,

  async run(argv, { stdout, stderr }) {
    const given = readArguments(argv, {
      single: ['image', 'ceremony', 'config', 'signing-key', 'signing-certificate', 'directory', 'output'],
      repeated: ['ca'],
      switches: ['fetch-config'],
      positionals: 0,
    });
    const output = outputOf(given);
    const folder = given.value('directory') ?? 'build/image';
    const built = await buildImage({
      root: ROOT,
      architecture: hostArchitecture(),
      version: VERSION,
      imageFile: required(given, 'image'),
      ceremonyFile: required(given, 'ceremony'),
      configurationFile: configurationOf(given),
      caFiles: given.values('ca'),
      signing: signingOf(given),
    });
    await writeBoth(folder, built);
    stdout.write(output === 'json' ? json(built.record) : asTable(built));
    stderr.write(`strongroom: wrote ${join(folder, IMAGE_FILE)} and ${join(folder, RECORD_FILE)}\n`);
    return 0;
  },
};

function required({ value }: Arguments, name: string): string {
  const found = value(name);
  if (found === undefined) throw new BuildError(`--${name} FILE is needed`);
  return found;
}

/** Said either way: an image that fetches because a flag was forgotten would run what its parent likes. */
function configurationOf({ value, has }: Arguments): string | undefined {
  const file = value('config');
  if ((file !== undefined) === has('fetch-config'))
    throw new BuildError('say where the configuration comes from: --config FILE, or --fetch-config');
  return file;
}

function signingOf({ value }: Arguments): { readonly keyFile: string; readonly certificateFile: string } | undefined {
  const [keyFile, certificateFile] = [value('signing-key'), value('signing-certificate')];
  if (keyFile === undefined && certificateFile === undefined) return undefined;
  if (keyFile === undefined || certificateFile === undefined)
    throw new BuildError('--signing-key and --signing-certificate are given together');
  return { keyFile, certificateFile };
}

/** The record last: whoever finds it finds its image. */
async function writeBoth(folder: string, { image, record }: BuiltImage): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await rm(join(folder, RECORD_FILE), { force: true });
    await writeWhole(join(folder, IMAGE_FILE), image);
    await writeWhole(join(folder, RECORD_FILE), json(record));
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new BuildError(`cannot write: ${error.message}`);
    throw error;
  }
}

async function writeWhole(file: string, contents: Buffer | string): Promise<void> {
  const beside = `${file}.new`;
  await writeFile(beside, contents, { flush: true });
  await rename(beside, file);
}

function asTable({ record }: BuiltImage): string {
  const { image, ceremony, configuration, measurements, inputs } = record;
  const lines = [
    `Image for ${image.architecture}, ${image.size} bytes from ${inputs.length} inputs, ${image.signed ? 'signed' : 'not signed'}`,
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${ceremony.digest_sha384}`,
    configuration === 'baked'
      ? 'Configuration baked in'
      : 'Configuration fetched from the parent at boot: PCR16 follows from it, see "strongroom eif describe --config"',
    '',
    ...rows(Object.entries(measurements)),
  ];
  return `${lines.join('\n')}\n`;
}
