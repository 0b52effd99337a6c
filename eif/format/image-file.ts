// `image.yaml`: what of an image does not come from this project, each file pinned by its digest. A file of other bytes
// stops the build.

import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { readYaml } from '../../ceremony/yaml.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import { isElf } from '../elf.ts';
import { BuildError, type Input, inputOf, readImageInput, readPinned } from '../inputs.ts';
import type { Architecture } from './format.ts';

const MAX_MODULES = 16;
/** COMMAND_LINE_SIZE of both architectures is 2048 or more; what the hypervisor adds has to fit in too. */
const MAX_CMDLINE_BYTES = 1024;
const MAX_MEMORY_MIB = 1024 * 1024;
const MAX_CPUS = 1024;

/** The command line of AWS's own images (aws-nitro-enclaves-cli, blobs/*\/cmdline). */
const NITRO_CMDLINES: Readonly<Record<Architecture, string>> = {
  x86_64:
    'reboot=k panic=30 pci=off nomodules console=ttyS0 i8042.noaux i8042.nomux i8042.nopnp i8042.dumbkbd random.trust_cpu=on',
  aarch64: 'reboot=k panic=30 pci=off nomodules console=ttyS0 random.trust_cpu=on root=/dev/ram0',
};

const pinnedFileSchema = z.strictObject({
  path: z.string('must be a path').min(1, 'must not be empty'),
  sha256: z
    .string('must be a SHA-256 digest in hexadecimal')
    .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest: 64 lower-case hexadecimal digits'),
});

const imageFileSchema = z.strictObject({
  /** What nitro-cli shows; not measured. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
    .default('strongroom'),
  kernel: pinnedFileSchema,
  cmdline: z
    .string()
    .regex(/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/, 'must be words of printable ASCII with one space between them')
    .max(MAX_CMDLINE_BYTES, `must be at most ${MAX_CMDLINE_BYTES} bytes`)
    .exactOptional(),
  modules: z.array(pinnedFileSchema).max(MAX_MODULES, `must be at most ${MAX_MODULES}`).default([]),
  memory_mib: z.int().min(64).max(MAX_MEMORY_MIB).default(2048),
  cpus: z.int().min(1).max(MAX_CPUS).default(2),
});

export interface KernelModule {
  readonly name: string;
  readonly data: Buffer;
}

export interface ImageParts {
  readonly name: string;
  readonly kernel: Buffer;
  readonly cmdline: string;
  readonly modules: readonly KernelModule[];
  readonly defaultMemoryBytes: bigint;
  readonly defaultCpus: bigint;
  readonly inputs: readonly Input[];
}

export function readImageFile(file: string, architecture: Architecture): ImageParts {
  const { name, kernel, cmdline, modules, memory_mib, cpus } = parse(file);
  const read = (pinned: z.infer<typeof pinnedFileSchema>, what: string): Buffer =>
    readPinned(resolve(dirname(file), pinned.path), pinned.sha256, what);
  const kernelBytes = read(kernel, 'the kernel');
  if (architecture === 'aarch64') checkTextOffset(kernelBytes);
  const loaded = modules.map((module) => ({ name: basename(module.path), data: read(module, 'a kernel module') }));
  checkModules(loaded);
  return {
    name,
    kernel: kernelBytes,
    cmdline: cmdline ?? NITRO_CMDLINES[architecture],
    modules: loaded,
    defaultMemoryBytes: BigInt(memory_mib) * 1024n ** 2n,
    defaultCpus: BigInt(cpus),
    inputs: [
      inputOf(kernel.path, kernelBytes),
      ...loaded.map(({ data }, at) => inputOf(modules[at]?.path ?? '', data)),
    ],
  };
}

/**
 * The kernel's Documentation/arch/arm64/booting.rst: `ARM\x64` at byte 56, text_offset at byte 8. Since Linux 5.10 it
 * is 0, "anywhere"; the Nitro loader takes it for address 0 (aws-nitro-enclaves-sdk-bootstrap, kernel/kernel.nix).
 */
function checkTextOffset(kernel: Buffer): void {
  const isImage = kernel.length >= 64 && kernel.toString('latin1', 56, 60) === 'ARM\x64';
  if (!isImage || kernel.readBigUInt64LE(8) !== 0n) return;
  throw new BuildError('the kernel: its header says text_offset 0, and the Nitro loader would load it at address 0', [
    "write 2 MiB there: printf '\\0\\0\\040\\0\\0\\0\\0\\0' | dd of=Image bs=1 seek=8 conv=notrunc; then pin the digest of that file",
  ]);
}

function parse(file: string): z.infer<typeof imageFileSchema> {
  const text = readImageInput(file, 'the image file').toString('utf8');
  const { data, error } = imageFileSchema.safeParse(parseYaml(file, text), { error: explainIssue });
  if (error === undefined) return data;
  const lines = error.issues.map(({ path, message }) => `${path.map(String).join('.') || 'the file'}: ${message}`);
  throw new BuildError(`${file} is not valid`, lines);
}

function parseYaml(file: string, text: string): unknown {
  try {
    return readYaml(text);
  } catch (error) {
    throw new BuildError(`${file} is not valid`, [error instanceof Error ? error.message : String(error)]);
  }
}

/** init gives the kernel the file as it is. */
function checkModules(modules: readonly KernelModule[]): void {
  for (const { name, data } of modules) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*\.ko$/.test(name) || !isElf(data))
      throw new BuildError(`the kernel module ${name} is no uncompressed .ko file`, [
        'decompress it first: xz -d, zstd -d',
      ]);
  }
  if (new Set(modules.map(({ name }) => name)).size !== modules.length)
    throw new BuildError('two kernel modules have the same name');
}
