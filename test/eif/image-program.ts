// The program `strongroom eif` on inputs as an operator has them, run from a copy of the project. The kernel is a
// stand-in: nothing here is booted.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyArn } from '../config/loading.ts';
import type { OtherUser } from '../support/nobody.ts';

/** In an image: specification/enclave.md#ceremony. */
export const CEREMONY = `generation: 1
kms_threshold: 1
kms_keys:
  - arns: ['${keyArn(1)}']
root_token_recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]
`;
export const CONFIGURATION = `# TEST
network: mainnet
tee:
  platform: nitro
  nitro:
    egress:
      endpoints:
        - { hostname: dynamodb.eu-central-1.amazonaws.com, loopback: 127.0.0.2, vsock_port: 8001 }
        - { hostname: kms.eu-central-1.amazonaws.com, loopback: 127.0.0.3, vsock_port: 8002 }
    unsafe_parent_writes_tables: true
tls: { mode: ratls }
signer_state: { backend: dynamodb, table: state }
key_sources: { dynamodb: { table: keys } }
anti_slashing: { backend: dynamodb, table: slashing }
parent_proxy: { enclave_cid: 16 }
`;
export const KERNEL = Buffer.from('a stand-in for a kernel');
export const CMDLINE =
  'reboot=k panic=30 pci=off nomodules console=ttyS0 i8042.noaux i8042.nomux i8042.nopnp i8042.dumbkbd random.trust_cpu=on';
export interface Built {
  readonly image: Buffer;
  readonly record: Buffer;
  readonly stdout: string;
}

export const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

export function writeInputs(project: string, to: string): string {
  mkdirSync(to);
  const module = readFileSync(join(project, 'build/eif/init')); // any ELF file
  writeFileSync(join(to, 'bzImage'), KERNEL);
  writeFileSync(join(to, 'nsm.ko'), module);
  writeFileSync(join(to, 'ceremony.yaml'), CEREMONY);
  writeFileSync(join(to, 'strongroom.yaml'), CONFIGURATION);
  writeFileSync(
    join(to, 'image.yaml'),
    `kernel: { path: bzImage, sha256: ${sha256(KERNEL)} }\nmodules:\n  - { path: nsm.ko, sha256: ${sha256(module)} }\n`,
  );
  return to;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: OtherUser;
  readonly umask?: string;
}

export function eif(project: string, argv: readonly string[], options: RunOptions = {}) {
  const { env, user, umask = '022' } = options;
  const shell = `umask ${umask}; exec "$0" eif "$@"`;
  const args = ['-c', shell, join(project, 'bin/strongroom'), ...argv];
  const [command, given] = user?.command('sh', args) ?? ['sh', args];
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const run = spawnSync(command, given, { encoding: 'utf8', cwd: '/', env: { PATH, NODE_COMPILE_CACHE, ...env } });
  return { code: run.status, stdout: run.stdout, stderr: run.stderr };
}

export function buildArguments(from: string, to: string): string[] {
  const file = (name: string): string => join(from, name);
  const files = [
    '--image',
    file('image.yaml'),
    '--ceremony',
    file('ceremony.yaml'),
    '--config',
    file('strongroom.yaml'),
  ];
  return ['build', ...files, '--directory', to];
}

export function build(project: string, argv: readonly string[], to: string, options: RunOptions = {}): Built {
  const { code, stdout, stderr } = eif(project, argv, options);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  return { image: readFileSync(join(to, 'image.eif')), record: readFileSync(join(to, 'pcrs.json')), stdout };
}
