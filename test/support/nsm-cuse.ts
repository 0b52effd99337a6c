// Serves /dev/nsm from user space with the driver's own ioctl ABI, through CUSE (character devices in user space), so
// that the signer runs unchanged in a guest without Nitro. For root inside a test guest only:
// `node nsm-cuse.ts [--name nsm] [--pcrs '{"0":"<hex>"}' | --pcrs-file FILE]`. Prints `nsm-cuse root <SHA-256 of the
// test root>` when the device is there; SIGHUP is a power cycle of the enclave, after which the registers are as at the
// start, or as the file says then, under the same authority. The structures are those of <linux/fuse.h>.

import { openSync, read, readFileSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createNsmEmulator, type NsmEmulator } from '../../rehearsal/nsm/emulator.ts';

/** Operations of <linux/fuse.h>. */
const OPCODE = { open: 14, release: 18, flush: 25, interrupt: 36, ioctl: 39, cuseInit: 4096 } as const;
const IN_HEADER_BYTES = 40;
const OUT_HEADER_BYTES = 16;
const INIT_OUT_BYTES = 72;
const OPEN_OUT_BYTES = 16;
const IOCTL_IN_BYTES = 32;
const KERNEL_PROTOCOL = { major: 7, minor: 31 } as const;
const UNRESTRICTED_IOCTL = 1; // CUSE_UNRESTRICTED_IOCTL: we say which memory of the caller is read and written
const IOCTL_RETRY = 4; // FUSE_IOCTL_RETRY
const MAX_TRANSFER_BYTES = 65_536;
const READ_BYTES = 128 * 1024;

/** _IOWR(0x0A, 0, struct nsm_raw): four u64, request address and length, answer address and length. */
const NSM_IOCTL = 0xc020_0a00;
const RAW_BYTES = 32;
const MAX_REQUEST_BYTES = 0x1000n;
const MAX_ANSWER_BYTES = 0x3000n;
const [EIO, ENOTTY, ENOSYS, EMSGSIZE] = [5, 25, 38, 90];

interface Iovec {
  readonly base: bigint;
  readonly length: bigint;
}

interface Message {
  readonly opcode: number;
  readonly unique: bigint;
  readonly body: Buffer;
}

const { values: flags } = parseArgs({
  options: {
    name: { type: 'string', default: 'nsm' },
    pcrs: { type: 'string', default: '{}' },
    'pcrs-file': { type: 'string' },
  },
});
let emulator = await createNsmEmulator({ pcrs: measured() });
process.on('SIGHUP', () => {
  void createNsmEmulator({ pcrs: measured(), pki: emulator.pki }).then((fresh) => {
    emulator = fresh;
    process.stdout.write('nsm-cuse reset\n');
  });
});
const device = openSync('/dev/cuse', 'r+');
serve(device, () => emulator, flags.name);

function measured(): Readonly<Record<string, Buffer>> {
  const file = flags['pcrs-file'];
  const said = JSON.parse(file === undefined ? flags.pcrs : readFileSync(file, 'utf8')) as Record<string, string>;
  return Object.fromEntries(Object.entries(said).map(([index, value]) => [index, Buffer.from(value, 'hex')]));
}

function serve(fd: number, current: () => NsmEmulator, name: string): void {
  const buffer = Buffer.alloc(READ_BYTES);
  const next = (): void =>
    read(fd, buffer, 0, buffer.length, null, (error, length) => {
      if (error?.code === 'ENODEV') return; // the device was removed
      if (error !== null) throw error;
      void handle(fd, current(), name, parseMessage(Buffer.from(buffer.subarray(0, length))));
      next();
    });
  next();
}

function parseMessage(bytes: Buffer): Message {
  return { opcode: bytes.readUInt32LE(4), unique: bytes.readBigUInt64LE(8), body: bytes.subarray(IN_HEADER_BYTES) };
}

async function handle(fd: number, emulator: NsmEmulator, name: string, message: Message): Promise<void> {
  const { opcode, unique, body } = message;
  if (opcode === OPCODE.interrupt) return; // it has no answer
  if (opcode === OPCODE.cuseInit) {
    reply(fd, unique, 0, initAnswer(body, name));
    process.stdout.write(`nsm-cuse root ${emulator.rootFingerprint}\n`);
  } else if (opcode === OPCODE.open) reply(fd, unique, 0, openAnswer());
  else if (opcode === OPCODE.release || opcode === OPCODE.flush) reply(fd, unique, 0);
  else if (opcode === OPCODE.ioctl) await ioctl(fd, emulator, unique, body);
  else reply(fd, unique, ENOSYS);
}

/**
 * The kernel does not know what an unrestricted ioctl reads and writes, and asks in rounds: first for struct nsm_raw,
 * then for the request it points to, and only then is the operation performed.
 */
async function ioctl(fd: number, emulator: NsmEmulator, unique: bigint, body: Buffer): Promise<void> {
  const inBytes = body.readUInt32LE(24);
  const outBytes = body.readUInt32LE(28);
  const raw: Iovec = { base: body.readBigUInt64LE(16), length: BigInt(RAW_BYTES) };
  if (body.readUInt32LE(12) !== NSM_IOCTL) return reply(fd, unique, ENOTTY);
  if (inBytes < RAW_BYTES) return reply(fd, unique, 0, ioctlAnswer(IOCTL_RETRY, [raw], []));
  const data = body.subarray(IOCTL_IN_BYTES, IOCTL_IN_BYTES + inBytes);
  const request = { base: data.readBigUInt64LE(0), length: data.readBigUInt64LE(8) };
  const room = { base: data.readBigUInt64LE(16), length: smaller(data.readBigUInt64LE(24), MAX_ANSWER_BYTES) };
  if (request.length > MAX_REQUEST_BYTES) return reply(fd, unique, EMSGSIZE);
  if (BigInt(inBytes) < raw.length + request.length || outBytes === 0)
    return reply(fd, unique, 0, ioctlAnswer(IOCTL_RETRY, [raw, request], [raw, room]));
  const end = RAW_BYTES + Number(request.length);
  const answer = await emulator.exchange(Buffer.from(data.subarray(RAW_BYTES, end))).catch(() => undefined);
  if (answer === undefined) return reply(fd, unique, EIO);
  const taken = answer.subarray(0, Number(room.length));
  const rawOut = Buffer.from(data.subarray(0, RAW_BYTES));
  rawOut.writeBigUInt64LE(BigInt(taken.length), 24);
  reply(fd, unique, 0, ioctlAnswer(0, [], [], Buffer.concat([rawOut, taken])));
}

function reply(fd: number, unique: bigint, errno: number, body: Buffer = Buffer.alloc(0)): void {
  const header = Buffer.alloc(OUT_HEADER_BYTES);
  header.writeUInt32LE(OUT_HEADER_BYTES + body.length, 0);
  header.writeInt32LE(-errno, 4);
  header.writeBigUInt64LE(unique, 8);
  writeSync(fd, Buffer.concat([header, body]));
}

/** struct cuse_init_out, and the device's name. */
function initAnswer(body: Buffer, name: string): Buffer {
  const out = Buffer.alloc(INIT_OUT_BYTES);
  out.writeUInt32LE(KERNEL_PROTOCOL.major, 0);
  out.writeUInt32LE(Math.min(KERNEL_PROTOCOL.minor, body.readUInt32LE(4)), 4);
  out.writeUInt32LE(UNRESTRICTED_IOCTL, 12);
  out.writeUInt32LE(MAX_TRANSFER_BYTES, 16);
  out.writeUInt32LE(MAX_TRANSFER_BYTES, 20);
  return Buffer.concat([out, Buffer.from(`DEVNAME=${name}\0`)]);
}

/** struct fuse_open_out with a file handle that is never looked at. */
function openAnswer(): Buffer {
  const out = Buffer.alloc(OPEN_OUT_BYTES);
  out.writeBigUInt64LE(1n, 0);
  return out;
}

/** struct fuse_ioctl_out, then the iovecs of a retry or the bytes of an answer. */
function ioctlAnswer(answerFlags: number, reads: readonly Iovec[], writes: readonly Iovec[], data?: Buffer): Buffer {
  const out = Buffer.alloc(16);
  out.writeUInt32LE(answerFlags, 4);
  out.writeUInt32LE(reads.length, 8);
  out.writeUInt32LE(writes.length, 12);
  const iovecs = [...reads, ...writes].map(({ base, length }) => {
    const iovec = Buffer.alloc(16);
    iovec.writeBigUInt64LE(base, 0);
    iovec.writeBigUInt64LE(length, 8);
    return iovec;
  });
  return Buffer.concat([out, ...iovecs, data ?? Buffer.alloc(0)]);
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
