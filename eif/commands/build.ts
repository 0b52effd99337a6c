// `strongroom eif build`: an image and its pcrs.json into a folder. Both appear whole or not at all.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileFault } from '../../command-line/file-faults.ts';
import type { CommandWords } from '../../command-line/read-command.ts';
import { note } from '../../command-line/terminal.ts';
import { type Shown, wrapFor } from '../../command-line/wrap.ts';
import { VERSION } from '../../enclave/api/version.ts';
import { type BuiltImage, buildImage } from '../build.ts';
import { sourceCommit } from '../commit.ts';
import { BUILD } from '../descriptions/build.ts';
import { hostArchitecture } from '../host.ts';
import { BuildError, WrongUsage } from '../inputs.ts';
import { type Command, json, readArguments, rows } from './command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IMAGE_FILE = 'image.eif';
const RECORD_FILE = 'pcrs.json';

type Given = CommandWords<typeof BUILD.flags>['values'];

export const buildCommand: Command = {
  description: BUILD,

  async run(argv, terminal) {
    const { stdout } = terminal;
    const { values } = readArguments(argv, BUILD, terminal);
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
    stdout.write(values.json ? json(built.record) : asTable(built, stdout));
    note(terminal, `strongroom: wrote ${join(folder, IMAGE_FILE)} and ${join(folder, RECORD_FILE)}`);
    return 0;
  },
};

/** Said either way: an image that fetches because a flag was forgotten would run what its parent likes. */
function configurationOf({ config: file, 'fetch-config': fetches }: Given): string | undefined {
  if ((file !== undefined) === fetches)
    throw new WrongUsage('say where the configuration comes from: --config FILE, or --fetch-config');
  return file;
}

function signingOf({
  'signing-key': keyFile,
  'signing-certificate': certificateFile,
}: Given): { readonly keyFile: string; readonly certificateFile: string } | undefined {
  if (keyFile === undefined && certificateFile === undefined) return undefined;
  if (keyFile === undefined || certificateFile === undefined)
    throw new WrongUsage('--signing-key and --signing-certificate are given together');
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

function asTable({ record }: BuiltImage, stdout: Shown): string {
  const { commit, image, ceremony, configuration, measurements, inputs } = record;
  const lines = [
    `Image for ${image.architecture}, ${image.size} bytes from ${inputs.length} inputs, ${image.signed ? 'signed' : 'not signed'}`,
    `Sources of commit ${commit}`,
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
