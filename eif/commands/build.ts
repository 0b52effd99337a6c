// `strongroom eif build`: an image and its pcrs.json into a folder. Both appear whole or not at all.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Description } from '../../command-line/command.ts';
import { JSON_OUTPUT } from '../../command-line/json-output.ts';
import type { CommandWords } from '../../command-line/read-command.ts';
import { VERSION } from '../../enclave/api/version.ts';
import { type BuiltImage, buildImage } from '../build.ts';
import { sourceCommit } from '../commit.ts';
import { hostArchitecture } from '../host.ts';
import { BuildError } from '../inputs.ts';
import { type Command, json, readArguments, rows } from './command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE_FILE = 'image.eif';
const RECORD_FILE = 'pcrs.json';

const DESCRIPTION = {
  summary: 'Build an enclave image, and say what will be measured of it',
  usage: ['--image FILE --ceremony FILE (--config FILE | --fetch-config) [OPTIONS]'],
  notes: [
    'Writes image.eif and pcrs.json. The same inputs give the same bytes, on any host of this architecture with the ' +
      'same libraries. Run "make image-parts" first: it compiles the addon and the first process.',
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
      placeholder: 'FILE',
      repeatable: true,
      meaning: "Certificate authorities to trust beside Amazon's own, in PEM",
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
    'strongroom eif build --image image.yaml --ceremony ceremony.yaml --fetch-config --ca rds-ca.pem --directory out',
  ],
} as const satisfies Description;

type Given = CommandWords<typeof DESCRIPTION.flags>['values'];

export const buildCommand: Command = {
  description: DESCRIPTION,

  async run(argv, terminal) {
    const { stdout, stderr } = terminal;
    const { values } = readArguments(argv, DESCRIPTION, terminal);
    const folder = values.directory ?? 'build/image';
    const built = await buildImage({
      root: ROOT,
      architecture: hostArchitecture(),
      version: VERSION,
      commit: sourceCommit(ROOT, values.commit),
      imageFile: values.image,
      ceremonyFile: values.ceremony,
      configurationFile: configurationOf(values),
      caFiles: values.ca ?? [],
      signing: signingOf(values),
    });
    await writeBoth(folder, built);
    stdout.write(values.json ? json(built.record) : asTable(built));
    stderr.write(`strongroom: wrote ${join(folder, IMAGE_FILE)} and ${join(folder, RECORD_FILE)}\n`);
    return 0;
  },
};

/** Said either way: an image that fetches because a flag was forgotten would run what its parent likes. */
function configurationOf({ config: file, 'fetch-config': fetches }: Given): string | undefined {
  if ((file !== undefined) === fetches)
    throw new BuildError('say where the configuration comes from: --config FILE, or --fetch-config');
  return file;
}

function signingOf({
  'signing-key': keyFile,
  'signing-certificate': certificateFile,
}: Given): { readonly keyFile: string; readonly certificateFile: string } | undefined {
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
  const { commit, image, ceremony, configuration, measurements, inputs } = record;
  const lines = [
    `Image for ${image.architecture}, ${image.size} bytes from ${inputs.length} inputs, ${image.signed ? 'signed' : 'not signed'}`,
    `Sources of commit ${commit}`,
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${ceremony.digest_sha384}`,
    configuration === 'baked'
      ? 'Configuration baked in'
      : 'Configuration fetched from the parent at boot: PCR16 follows from it, see "strongroom eif describe --config"',
    '',
    ...rows(Object.entries(measurements)),
  ];
  return `${lines.join('\n')}\n`;
}
