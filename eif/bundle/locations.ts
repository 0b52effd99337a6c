// How the signer's sources name files by their own place. In the image all lie in one folder, so the bundler rewrites
// these names. A use of `import.meta` that it does not know is refused while the image is built.

import { basename, dirname, join, relative } from 'node:path';
import { BuildError } from '../inputs.ts';

export const ADDON_SOURCE = 'build/native/strongroom.node';

interface LocatedFiles {
  readonly contents: string;
  readonly workers: readonly string[];
  readonly addon: boolean;
}

const LOCATION = /new URL\(\s*'([^']+)',\s*import\.meta\.url,?\s*\)/g;
/** Loads what it is given an absolute path of. */
const ALLOWED = 'createRequire(import.meta.url)';

/** @param file of the source, absolute @throws BuildError for a place that the image does not have */
export function relocate(root: string, file: string, source: string): LocatedFiles {
  const workers: string[] = [];
  let addon = false;
  const contents = source.replace(LOCATION, (_, name: string) => {
    const target = relative(root, join(dirname(file), name));
    if (target === ADDON_SOURCE) {
      addon = true;
      return `new URL('./${basename(target)}', import.meta.url)`;
    }
    if (!target.endsWith('-worker.ts')) throw unknown(root, file, `it names ${target}`);
    workers.push(target);
    return `new URL('./${workerOutput(target)}', import.meta.url)`;
  });
  const rest = withoutComments(contents)
    .replaceAll(/new URL\('[^']+', import\.meta\.url\)/g, '')
    .replaceAll(ALLOWED, '');
  if (/import\s*\.\s*meta/.test(rest))
    throw unknown(root, file, 'it uses import.meta otherwise than for a worker or the addon');
  return { contents, workers, addon };
}

export function workerOutput(source: string): string {
  return `${basename(source, '.ts')}.mjs`;
}

function unknown(root: string, file: string, problem: string): BuildError {
  return new BuildError(
    `the bundler does not know where a file of ${relative(root, file)} would be in an image: ${problem}`,
  );
}

/** Whole-line comments: enough, because a leftover only refuses the build. */
function withoutComments(source: string): string {
  return source.replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, '');
}
