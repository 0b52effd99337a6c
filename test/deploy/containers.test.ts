// Compose and Helm, as far as they go without their programs: the files parse, they are as closed as the guide says,
// their configurations are accepted by the program, and make-secrets makes what compose.yaml mounts. Where `helm` is
// installed, it judges the chart.

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { lacking } from '../support/needs.ts';

const ROOT = join(import.meta.dirname, '../..');
const COMPOSE = join(ROOT, 'deploy/compose');
const CHART = join(ROOT, 'deploy/helm/strongroom');

interface Service {
  readonly image: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const read = (path: string): string => readFileSync(path, 'utf8');
const compose = parse(read(join(COMPOSE, 'compose.yaml')), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
};
const services = Object.entries(compose.services);

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-containers-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function makeSecrets(): ReturnType<typeof spawnSync> {
  copyFileSync(join(COMPOSE, 'make-secrets'), join(folder, 'make-secrets'));
  return spawnSync('sh', [join(folder, 'make-secrets')], { encoding: 'utf8' });
}

/** The configuration of a container, with the folders that it mounts lying in ours. */
async function check(config: string, ...args: string[]) {
  const file = join(folder, 'strongroom.yaml');
  mkdirSync(join(folder, 'keys'), { recursive: true });
  writeFileSync(
    file,
    config
      .replaceAll(/\/run\/secrets(?:\/strongroom)?/g, join(folder, 'secrets'))
      .replaceAll('/etc/strongroom/keys', join(folder, 'keys'))
      .replaceAll('/var/lib/strongroom', folder),
  );
  return runStrongroom(['server', '--check', '--offline', '-c', file, ...args]);
}

describe('deploy/compose', () => {
  it('runs the signer without a writable root, capabilities or a way to more rights', () => {
    const own = services.filter(([, { image }]) => image.startsWith('strongroom:'));
    expect(own.map(([name]) => name)).toEqual(['schema', 'strongroom']);
    for (const [, service] of own) {
      expect(service).toMatchObject({ user: '10000:10000', read_only: true, cap_drop: ['ALL'] });
    }
    for (const [, { security_opt }] of services) expect(security_opt).toEqual(['no-new-privileges:true']);
  });

  it('publishes on this machine only, and the database to no one', () => {
    const ports = services.flatMap(([name, { ports = [] }]) => ports.map((port) => `${name} ${port}`));
    expect(ports).toEqual(['strongroom 127.0.0.1:9000:9000', 'strongroom 127.0.0.1:3000:3000']);
    expect(compose.networks['database']).toEqual({ internal: true });
    expect(compose.services['database']?.networks).toEqual(['database']);
  });

  it('mounts files that are there, and secrets that make-secrets makes once', () => {
    for (const [, { volumes = [], environment = {} }] of services) {
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        if (source.startsWith('./') && source !== './keys') expect(existsSync(join(COMPOSE, source))).toBe(true);
      }
      for (const value of Object.values(environment)) expect(value).toMatch(/^(?:file:)?\/run\/secrets\/[\w-]+$/);
    }
    const used = new Set(services.flatMap(([, { secrets = [] }]) => secrets));
    expect([...used].sort()).toEqual(Object.keys(compose.secrets).sort());
    expect(makeSecrets()).toMatchObject({ status: 0 });
    const made = readdirSync(join(folder, 'secrets'));
    expect(made.sort()).toEqual(
      Object.values(compose.secrets)
        .map(({ file }) => file.replace('./secrets/', ''))
        .sort(),
    );
    const before = read(join(folder, 'secrets/signer-url'));
    expect(before).toMatch(/^postgres:\/\/signer:[0-9a-f]{64}@database\/slashing\?sslmode=disable$/);
    expect(makeSecrets()).toMatchObject({ status: 1, stderr: expect.stringContaining('stays as it is') });
    expect(read(join(folder, 'secrets/signer-url'))).toBe(before);
  });

  it('gives the signer the rights that the guide gives it', () => {
    const guide = /-- signer role\n([\s\S]*?)```/.exec(read(join(ROOT, 'docs/guides/postgres.md')))?.[1];
    expect(read(join(COMPOSE, 'grants.sql'))).toContain(guide);
  });

  it('has a configuration that the program accepts', async () => {
    expect(await check(read(join(COMPOSE, 'strongroom.yaml')))).toMatchObject({ code: 0 });
  });
});

describe('deploy/helm', () => {
  const values = parse(read(join(CHART, 'values.yaml'))) as Record<string, unknown>;
  const schema = JSON.parse(read(join(CHART, 'values.schema.json'))) as {
    readonly required: readonly string[];
    readonly properties: Record<string, unknown>;
  };

  it('has values that its schema knows, all of them', () => {
    expect(Object.keys(values).filter((key) => !(key in schema.properties))).toEqual([]);
    expect(schema.required.filter((key) => !(key in values))).toEqual([]);
    expect(values['replicas']).toBe(1);
  });

  it('has a configuration that the program accepts', async () => {
    expect(await check(stringify(values['config']))).toMatchObject({ code: 0 });
  });

  it.skipIf(lacking('helm'))('is taken by helm, which refuses two signers with two records', () => {
    const image = ['--set', 'image.repository=registry.example/strongroom', '--set-string', 'image.tag=0.1.0'];
    const helm = (...args: string[]) => spawnSync('helm', [...args, ...image], { encoding: 'utf8' });
    expect(helm('lint', '--strict', CHART)).toMatchObject({ status: 0 });
    expect(helm('template', 's', CHART, '--set', 'serviceMonitor.enabled=true')).toMatchObject({ status: 0 });
    const two = helm('template', 's', CHART, '--set', 'replicas=2');
    expect(two).toMatchObject({ status: 1, stderr: expect.stringContaining('get validators slashed') });
    for (const backend of ['postgres', 'dynamodb']) {
      const shared = helm('template', 's', CHART, '--set', `replicas=2,config.anti_slashing.backend=${backend}`);
      expect(shared.status).toBe(0);
      expect(shared.stdout).not.toContain('volumeClaimTemplates');
      expect(shared.stdout).not.toContain('slashing_protection.sqlite');
    }
    for (const name of ['a.b', '1a', 'a'.repeat(53)])
      expect(helm('template', name, CHART).stderr).toContain('Take another name');
    expect(helm('template', 'a'.repeat(52), CHART)).toMatchObject({ status: 0 });
  });

  it('has the guard in its template, where helm is not installed too', () => {
    expect(read(join(CHART, 'templates/strongroom.yaml'))).toMatch(
      /has \$backend \(list "postgres" "dynamodb"\)[\s\S]*gt \(int \.Values\.replicas\) 1\) \(not \$shared\)[\s\S]*fail/,
    );
  });
});

it('the guide to reproducing names the Containerfile: docker build looks for a Dockerfile alone', () => {
  const guide = read(join(ROOT, 'docs/guides/reproduce.md'));
  const files = [...guide.matchAll(/^docker build (.*)/gm)].map(
    ([, line = '']) => /--file (\S+)/.exec(line)?.[1] ?? '',
  );
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) expect(read(join(ROOT, file))).toMatch(/^FROM \$\{BASE\}$/m);
});
