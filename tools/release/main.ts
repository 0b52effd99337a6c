// `make release`: what somebody installs who has no checkout, into a folder, with no network and no Docker. Exit codes:
// 0 done, 1 a part that is missing or does not fit.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ArgumentsError, withAdvice } from '../../common/command-line/arguments.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { showProgress } from '../../common/command-line/progress.ts';
import { readCommand } from '../../common/command-line/read-command.ts';
import { note } from '../../common/command-line/terminal.ts';
import { hostArchitecture } from '../../eif/host.ts';
import { BuildError } from '../../eif/inputs.ts';
import { sha256Hex } from '../../eif/measure.ts';
import { type Artefact, buildRelease, type ReleaseRequest } from './build.ts';
import { originOf } from './origin.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const MARK = 'SHA256SUMS';
/** What the owner replaces, in README alone. */
const NO_ADDRESS = 'RELEASE_ADDRESS';

const FLAGS = {
  commit: { placeholder: 'HEX', meaning: 'The commit of the sources, where git does not say it' },
  directory: { placeholder: 'FOLDER', meaning: 'Where to write; build/release when not given' },
  image: { placeholder: 'FILE', meaning: 'An image.yaml, for pcrs.json: the example image on its kernel' },
} as const;

async function main(argv: readonly string[]): Promise<number> {
  const { values } = readCommand({ flags: FLAGS }, argv);
  const folder = values.directory ?? join(ROOT, 'build/release');
  const origin = originOf(ROOT, { commit: values.commit, env: process.env });
  checkFolder(folder);
  const artefacts = await buildWithProgress({
    root: ROOT,
    architecture: hostArchitecture(),
    origin,
    image: values.image,
  });
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  // The sums are written last: they never exist without their files.
  for (const { name, data } of [...artefacts, sumsOf(artefacts)]) writeFileSync(join(folder, name), data);
  process.stdout.write(`strongroom ${origin.version}, commit ${origin.commit}\n`);
  for (const { name, data } of artefacts) process.stdout.write(`${String(data.length).padStart(12)} ${name}\n`);
  if (values.image === undefined)
    note(process, 'strongroom: no pcrs.json: it takes a kernel (make release IMAGE=image.yaml)');
  if (readFileSync(join(ROOT, 'README.md'), 'utf8').includes(NO_ADDRESS))
    note(process, `strongroom: README.md says no address of releases yet: fill in ${NO_ADDRESS} before you publish`);
  note(process, `strongroom: wrote ${folder}`);
  return EXIT.ok;
}

async function buildWithProgress(request: ReleaseRequest): Promise<Artefact[]> {
  using _shown = showProgress(process, { doing: 'making the release' });
  return await buildRelease(request);
}

function sumsOf(artefacts: readonly Artefact[]): Artefact {
  const lines = artefacts.map(({ name, data }) => `${sha256Hex(data)}  ${name}\n`).sort();
  return { name: MARK, data: Buffer.from(lines.join('')) };
}

/** @throws BuildError where something is that is not an earlier release: it would be taken for a part of this one */
function checkFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const names = readdirSync(folder);
  if (names.length > 0 && !names.includes(MARK)) throw new BuildError(`${folder} is not empty, and no release`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof ArgumentsError) sayFailure(process, 'strongroom release', withAdvice(error));
  else if (error instanceof BuildError) sayFailure(process, 'strongroom release', error.message, error.details);
  else throw error;
  process.exitCode = EXIT.failed;
}
