// An appliance's image, built with the program's own commands as an operator builds one, for a kernel that a test
// gives. All keys are TEST keys.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateAgeIdentity } from '../../../ceremony/age-identity.ts';
import { type CeremonyBlock, ceremonyDigest, parseCeremony } from '../../../ceremony/definition.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { run } from '../tools.ts';
import { type Authority, makeAuthority } from './authority.ts';
import { CUSTODY_KEYS, DYNAMODB_HOST, KMS_HOST } from './settings.ts';

export interface ApplianceOptions {
  /** Is emptied; keeps what the build wrote. */
  readonly folder: string;
  readonly kernel: string;
  readonly modules?: readonly string[];
  readonly cmdline: string;
  /** Baked in; without it, the parent gives it at boot. */
  readonly configuration?: string;
  /** An image of the same deployment: its participant, its authority, and its ceremony unless `ceremony` is given. */
  readonly after?: Pick<Appliance, 'identity' | 'ceremony' | 'tls'>;
  readonly ceremony?: CeremonyBlock;
  /** Hosts beside AWS's two that the authority vouches for. */
  readonly hosts?: readonly string[];
}

export interface Appliance {
  readonly file: string;
  readonly image: Buffer;
  readonly measurements: Buffer;
  /** The age identity of the ceremony's one participant. */
  readonly identity: string;
  readonly ceremony: CeremonyBlock;
  readonly ceremonyDigest: string;
  readonly registers: Readonly<Record<string, string>>;
  /** What alone vouches for the two hosts of AWS and those of `hosts`, and the stand-ins show. */
  readonly tls: Authority;
}

export async function buildAppliance(options: ApplianceOptions): Promise<Appliance> {
  const { folder, after } = options;
  const hosts = [DYNAMODB_HOST, KMS_HOST, ...(options.hosts ?? [])];
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { identity, ceremony } = after ?? (await newParticipant());
  const block = options.ceremony ?? ceremony;
  const tls = after?.tls ?? makeAuthority(folder, hosts);
  const written = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const imageFile = written('image.yaml', imageYaml(options));
  const ceremonyFile = written('ceremony.yaml', JSON.stringify(block));
  const configuration =
    options.configuration === undefined
      ? ['--fetch-config']
      : ['--config', written('config.yaml', options.configuration)];
  execFileSync('make', ['-s', 'image-parts'], { cwd: PROJECT_ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const args = ['--image', imageFile, '--ceremony', ceremonyFile, ...configuration];
  const authorities = hosts.flatMap((host) => ['--ca', `${host}=${tls.authority}`]);
  run(join(PROJECT_ROOT, 'bin/strongroom'), ['eif', 'build', ...args, ...authorities, '--directory', folder]);
  const file = join(folder, 'image.eif');
  const measurements = readFileSync(join(folder, 'pcrs.json'));
  return {
    ...{ file, image: readFileSync(file), measurements, identity, registers: registersOf(measurements), tls },
    ceremony: block,
    ceremonyDigest: ceremonyDigest(parseCeremony(block)).toString('hex'),
  };
}

async function newParticipant(): Promise<Pick<Appliance, 'identity' | 'ceremony'>> {
  const { identity, recipient } = await generateAgeIdentity();
  return { identity, ceremony: firstCeremony(recipient) };
}

function registersOf(pcrs: Buffer): Readonly<Record<string, string>> {
  const { measurements } = JSON.parse(pcrs.toString('utf8')) as { measurements: Readonly<Record<string, string>> };
  return Object.fromEntries(Object.entries(measurements).map(([name, value]) => [name.replace('PCR', ''), value]));
}

function imageYaml({ kernel, modules = [], cmdline }: ApplianceOptions): string {
  const pinned = (path: string): string => {
    const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
    return `{ path: ${JSON.stringify(path)}, sha256: ${sha256} }`;
  };
  return `name: strongroom-test
kernel: ${pinned(kernel)}
modules: [${modules.map(pinned).join(', ')}]
cmdline: ${cmdline}
`;
}

function firstCeremony(recipient: string): CeremonyBlock {
  return {
    generation: 1,
    kms_threshold: 2,
    kms_keys: CUSTODY_KEYS.map((arn) => ({ arns: [arn] })),
    retired_kms_keys: [],
    root_token_recipients: [recipient],
  };
}
