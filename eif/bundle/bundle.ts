// A program as an image or a release has it: what its entry imports, and nothing else, in a few modules of one folder.
// The same sources and packages give the same bytes in any folder, for any user. Refused: packages that are for
// development only, imports that would be looked for at run time, sources that name files the image does not have.

import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, join, relative } from 'node:path';
import { type BuildOptions, type BuildResult, build, type Metafile, type OnResolveResult, type Plugin } from 'esbuild';
import { BuildError, type Input, inputOf, readInput, sortedInputs } from '../inputs.ts';
import { COMPILED_FILE } from './compiled-module.ts';
import { ADDON, readCompiledPart } from './compiled-parts.ts';
import { ADDON_SOURCE, relocate, workerOutput } from './locations.ts';
import { importsOfOtherLibcs, lockedPackages } from './lockfile.ts';

/** For records of how something was built. */
export { version as esbuildVersion } from 'esbuild';

export interface BundleFile {
  /** In the folder of the bundle, without a folder of its own. */
  readonly name: string;
  readonly data: Buffer;
}

export interface Bundle {
  readonly files: readonly BundleFile[];
  /** Every source and package file that is in it; paths relative to the project. */
  readonly inputs: readonly Input[];
}

/** What stands in the place of a module: a file beside the bundle, another source of the project, or a text. */
export type InPlace = { readonly beside: string } | { readonly source: string } | { readonly text: string };

export interface Program {
  /** TypeScript, as if in the project's folder. */
  readonly entry: string;
  /** By the paths of the modules, relative to the project. */
  readonly inPlaceOf: ReadonlyMap<string, InPlace>;
}

/** What init starts (eif/init/signer.c). */
export const MAIN_FILE = 'main.mjs';

const ENTRY = 'strongroom-image';
/** The texts that stand in the place of modules. */
const WRITTEN = 'strongroom-written';
/** `server` is all that runs in an image: the other commands are for an operator's shell, and an enclave has none. */
const ENTRY_SOURCE = `import { main } from "./enclave/main.ts";
const [command, ...rest] = process.argv.slice(2);
if (command !== "server") {
  process.stderr.write("strongroom: an enclave image runs the server and nothing else\\n");
  process.exit(1);
}
await main("server", rest);
`;
const SIGNER: Program = {
  entry: ENTRY_SOURCE,
  inPlaceOf: new Map([['enclave/compiled.ts', { beside: COMPILED_FILE }]]),
};

/** What these packages ask for and do without: builds for other platforms, and extras. Nothing else may be missing. */
const MAY_MISS: readonly string[] = ['@chainsafe/blst', '@chainsafe/hashtree', 'debug', 'pg'];

/** What CommonJS packages expect around them; their folder is the bundle's. */
const COMMONJS_NAMES = `import { createRequire as strongroomCreateRequire } from 'node:module';
const require = strongroomCreateRequire(import.meta.url);
const { filename: __filename, dirname: __dirname } = import.meta;`;

/**
 * A loader that napi-rs wrote: it gives itself the `require` that it has anyway, and the one of a bundle cannot be
 * given anew. The loader would fail, and its caller do without the addon, without a word.
 */
const NATIVE_LOADER = /[/\\]@chainsafe[/\\]hashtree[/\\]index\.js$/;
const OWN_REQUIRE = /^require = createRequire\(__filename\)$/m;

const MAX_ROUNDS = 8;

/**
 * The signer of an image: what `enclave/main.ts` imports.
 * @param root the project's folder
 * @throws BuildError when the sources do not bundle, or would bring what must not be in an image
 */
export function bundleSigner(root: string): Promise<Bundle> {
  return bundleProgram(root, SIGNER);
}

/** @throws BuildError */
export async function bundleProgram(root: string, program: Program): Promise<Bundle> {
  let workers: readonly string[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = new Set<string>();
    const result = await run(root, program, workers, found);
    const all = [...found].sort();
    // A worker may name another: once more, until all that are named are in.
    if (all.length !== workers.length) {
      workers = all;
      continue;
    }
    checkImports(result.metafile, program);
    checkPackages(root, result.metafile);
    return assembled(root, result);
  }
  throw new BuildError('workers of the program name more and more workers');
}

type Result = BuildResult<BuildOptions & { write: false; metafile: true }>;

async function run(root: string, program: Program, workers: readonly string[], found: Set<string>): Promise<Result> {
  try {
    return await build({
      absWorkingDir: root,
      entryPoints: [
        { in: ENTRY, out: basename(MAIN_FILE, '.mjs') },
        ...workers.map((source) => ({ in: join(root, source), out: basename(workerOutput(source), '.mjs') })),
      ],
      plugins: [imagePlugin(root, program, found)],
      bundle: true,
      splitting: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node26',
      // As Node.js resolves, without the conditions of bundlers: what runs in the image is what ran in the tests.
      conditions: [],
      nodePaths: [],
      preserveSymlinks: true,
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
      outdir: join(root, 'app'),
      outExtension: { '.js': '.mjs' },
      chunkNames: 'chunk-[hash]',
      assetNames: '[name]',
      loader: { '.node': 'copy' },
      external: ['pg-native'],
      legalComments: 'none',
      charset: 'utf8',
      banner: { js: COMMONJS_NAMES },
      logLevel: 'silent',
    });
  } catch (error) {
    throw bundlingFailed(error);
  }
}

function imagePlugin(root: string, { entry, inPlaceOf }: Program, workers: Set<string>): Plugin {
  const ofOtherLibcs = importsOfOtherLibcs(lockedPackages(root));
  return {
    name: 'strongroom-image',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: new RegExp(`^${ENTRY}$`) }, () => ({ path: ENTRY, namespace: ENTRY }));
      onLoad({ filter: /.*/, namespace: ENTRY }, () => ({ contents: entry, loader: 'ts', resolveDir: root }));
      // As if it were not installed: its loader asks for the builds of one platform after the other.
      onResolve({ filter: /^[^./]/ }, ({ path }) => (ofOtherLibcs(path) ? { path, external: true } : undefined));
      onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir }) => {
        const module = relative(root, join(resolveDir, path));
        const inPlace = inPlaceOf.get(module);
        return inPlace === undefined ? undefined : resolvedTo(root, module, inPlace);
      });
      onLoad({ filter: /.*/, namespace: WRITTEN }, ({ path }) => {
        const inPlace = inPlaceOf.get(path);
        return { contents: inPlace !== undefined && 'text' in inPlace ? inPlace.text : '', loader: 'ts' };
      });
      onLoad({ filter: NATIVE_LOADER }, ({ path }) => {
        return { contents: readFileSync(path, 'utf8').replace(OWN_REQUIRE, ''), loader: 'js' };
      });
      onLoad({ filter: /\.ts$/, namespace: 'file' }, ({ path }) => {
        const { contents, workers: named } = relocate(root, path, readFileSync(path, 'utf8'));
        for (const worker of named) workers.add(worker);
        return { contents, loader: 'ts' };
      });
    },
  };
}

function resolvedTo(root: string, module: string, inPlace: InPlace): OnResolveResult {
  if ('beside' in inPlace) return { path: `./${inPlace.beside}`, external: true };
  if ('source' in inPlace) return { path: join(root, inPlace.source) };
  return { path: module, namespace: WRITTEN };
}

function bundlingFailed(error: unknown): unknown {
  if (!(error instanceof Error) || !('errors' in error) || !Array.isArray(error.errors)) return error;
  const lines = error.errors.map(({ text, location, detail }) => {
    if (detail instanceof BuildError) return detail.message;
    return location == null ? String(text) : `${location.file}:${location.line}: ${text}`;
  });
  return new BuildError('the program cannot be bundled', lines);
}

/**
 * Imports that stay are Node's own modules and those that lie beside the bundle: everything else would be looked for in
 * the running image.
 */
function checkImports({ inputs }: Metafile, { inPlaceOf }: Program): void {
  const beside = [...inPlaceOf.values()].flatMap((inPlace) => ('beside' in inPlace ? [`./${inPlace.beside}`] : []));
  const wrong = Object.entries(inputs).flatMap(([importer, { imports }]) =>
    imports
      .filter(({ external, path }) => external === true && !isBuiltin(path) && !beside.includes(path))
      .filter(({ path }) => path !== '<runtime>')
      .filter(({ kind }) => kind !== 'require-call' || !MAY_MISS.includes(packageOf(importer) ?? ''))
      .map(({ path }) => `${importer} imports ${path}`),
  );
  if (wrong.length > 0) throw new BuildError('the bundle would look for modules that the image does not have', wrong);
}

/**
 * By the lockfile: what it calls `dev` is not installed by those who only run the program, and no test ran with it in
 * the bundle.
 */
function checkPackages(root: string, { inputs }: Metafile): void {
  const packages = lockedPackages(root);
  const wrong = Object.keys(inputs).flatMap((path) => {
    const folder = packageFolderOf(path);
    if (folder === undefined) return [];
    const locked = packages[folder];
    if (locked === undefined) return [`${path} is of a package that the lockfile does not have`];
    return locked.dev === true ? [`${path} is of a development dependency`] : [];
  });
  if (wrong.length > 0) throw new BuildError('the bundle would have packages that must not be in an image', wrong);
}

/** `node_modules/a/node_modules/@b/c` of a file in it; undefined for the project's own. */
export function packageFolderOf(path: string): string | undefined {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0];
}

function packageOf(path: string): string | undefined {
  return packageFolderOf(path)?.replace(/^.*node_modules\//, '');
}

function assembled(root: string, { outputFiles, metafile }: Result): Bundle {
  const addon = readCompiledPart(root, ADDON);
  const files: BundleFile[] = outputFiles.map(({ path, contents }) => ({
    name: basename(path),
    data: Buffer.from(contents),
  }));
  files.push({ name: basename(ADDON_SOURCE), data: addon });
  if (new Set(files.map(({ name }) => name)).size !== files.length)
    throw new BuildError('two files of the bundle have the same name');
  const isWritten = (path: string): boolean => path.startsWith(`${ENTRY}:`) || path.startsWith(`${WRITTEN}:`);
  const sources = Object.keys(metafile.inputs).filter((path) => !isWritten(path));
  const inputs = sources.map((path) => inputOf(path, readInput(join(root, path), 'a source')));
  return { files, inputs: sortedInputs([...inputs, inputOf(ADDON_SOURCE, addon)]) };
}
