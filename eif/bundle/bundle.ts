// A program as an image or a release has it: what its entry imports, in a few modules of one folder. The same sources
// give the same bytes. Refused: packages for development, imports that would be looked for at run time.

import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, join, relative } from 'node:path';
import { type BuildOptions, type BuildResult, build, type Metafile, type OnResolveResult, type Plugin } from 'esbuild';
import { z } from 'zod';
import { BuildError, type Input, inputOf, readImageInput, sortedInputs } from '../inputs.ts';
import { COMPILED_FILE } from './compiled-module.ts';
import { ADDON, readCompiledPart } from './compiled-parts.ts';
import { ADDON_SOURCE, relocate, workerOutput } from './locations.ts';

export { version as esbuildVersion } from 'esbuild';

export interface BundleFile {
  readonly name: string;
  readonly data: Buffer;
}

export interface Bundle {
  readonly files: readonly BundleFile[];
  readonly inputs: readonly Input[];
}

/** What replaces a module: a file in the folder of the bundle, another source of the project, or a text. */
export type InPlace = { readonly beside: string } | { readonly source: string } | { readonly text: string };

export interface Program {
  readonly entry: string;
  readonly inPlaceOf: ReadonlyMap<string, InPlace>;
}

/** What init starts (eif/init/signer.c). */
export const MAIN_FILE = 'main.mjs';

const ENTRY = 'strongroom-image';
const WRITTEN = 'strongroom-written';
const IN_AN_IMAGE = { inPlaceOf: new Map([['enclave/compiled.ts', { beside: COMPILED_FILE }]]) } as const;
const SIGNER: Program = { entry: 'import "./enclave/main.ts";\n', ...IN_AN_IMAGE };
const CHECK: Program = { entry: 'import "./enclave/check.ts";\n', ...IN_AN_IMAGE };

/** What these packages ask for and do without: builds for other platforms, and extras. Nothing else may be missing. */
const MAY_MISS: readonly string[] = ['@chainsafe/blst', '@chainsafe/hashtree', 'debug', 'pg'];

/** What CommonJS packages expect around them; their folder is the bundle's. */
const COMMONJS_NAMES = `import { createRequire as strongroomCreateRequire } from 'node:module';
const require = strongroomCreateRequire(import.meta.url);
const { filename: __filename, dirname: __dirname } = import.meta;`;

/**
 * A loader that napi-rs wrote gives itself the `require` that it has anyway; that of a bundle cannot be given again.
 * The loader would fail, and its caller do without the addon, without a word.
 */
const NATIVE_LOADER = /[/\\]@chainsafe[/\\]hashtree[/\\]index\.js$/;
const OWN_REQUIRE = /^require = createRequire\(__filename\)$/m;

const MAX_ROUNDS = 8;

/** @param root the project's folder @throws BuildError */
export function bundleSigner(root: string): Promise<Bundle> {
  return bundleProgram(root, SIGNER);
}

export function ownSources({ inputs }: Bundle): readonly Input[] {
  return inputs.filter(({ path }) => path.endsWith('.ts') && packageFolderOf(path) === undefined);
}

/** What says whether that signer takes a configuration (enclave/check.ts); not for an image. @throws BuildError */
export function bundleCheck(root: string): Promise<Bundle> {
  return bundleProgram(root, CHECK);
}

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
      charset: 'ascii', // V8 keeps a source in two bytes a character when one is beyond Latin-1
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

/** The running image would look in vain for any import but Node's own modules and the files in the bundle's folder. */
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

/** What the lockfile calls `dev` is not installed by those who only run the program, and no test ran with it. */
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
  const inputs = sources.map((path) => inputOf(path, readImageInput(join(root, path), 'a source')));
  return { files, inputs: sortedInputs([...inputs, inputOf(ADDON_SOURCE, addon)]) };
}

// The lockfile says which packages are for development, and which are for another C library than the pinned Node.js.
// npm 9 installs packages of every libc, later ones do not; a bundle is the same whichever installed it.

/** The C library of the pinned Node.js, and so of everything that is loaded with it. */
const LIBC = 'glibc';

const lockfileSchema = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().optional(), libc: z.array(z.string()).optional() })),
});

type LockedPackages = z.infer<typeof lockfileSchema>['packages'];

function lockedPackages(root: string): LockedPackages {
  const text = readImageInput(join(root, 'package-lock.json'), 'the lockfile').toString('utf8');
  return lockfileSchema.parse(JSON.parse(text)).packages;
}

/** The imports that the pinned Node.js cannot load, whether they are installed or not. */
function importsOfOtherLibcs(packages: LockedPackages): (path: string) => boolean {
  const others = Object.entries(packages).filter(([, { libc }]) => libc !== undefined && !libc.includes(LIBC));
  const names = others.map(([folder]) => folder.replace(/^.*node_modules\//, ''));
  return (path) => names.some((name) => path === name || path.startsWith(`${name}/`));
}
