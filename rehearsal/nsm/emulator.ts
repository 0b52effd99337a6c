// A Nitro Secure Module in this process (aws-nitro-enclaves-nsm-api, src/api/mod.rs), with real documents under a test
// authority. Registers 0 to 15 are locked from the start. Test keys only.

import { createHash, randomBytes } from 'node:crypto';
import { MAX_DOCUMENT_FIELD_BYTES, PCR_COUNT } from '../../common/attestation/contract.ts';
import { type CborValue, decodeCbor, encodeCbor } from '../../common/formats/cbor.ts';
import { PCR_BYTES } from '../../common/formats/register.ts';
import { type Clock, systemClock } from '../../common/observe/clock.ts';
import type { NsmDevice } from '../../signer/tee/nsm.ts';
import { type Certified, createNsmPki, type NsmPki } from './pki.ts';

export interface NsmEmulatorOptions extends DocumentShape {
  readonly pki?: NsmPki;
  /** Start values over the defaults; `debugMode` makes registers 0 to 2 zero, as nitro-cli --debug-mode does. */
  readonly pcrs?: Readonly<Record<number, Uint8Array>>;
  readonly debugMode?: boolean;
  readonly moduleId?: string;
  readonly clock?: Pick<Clock, 'now'>;
  /** How fields that were not asked for are written: null (as AWS does) or left out. */
  readonly optionalFields?: 'null' | 'absent';
  readonly timestamp?: number;
  /** The last change to a payload before it is signed. */
  readonly deviate?: (payload: DocumentPayload) => DocumentPayload;
}

export interface NsmEmulator {
  readonly exchange: NsmDevice;
  readonly pki: NsmPki;
  readonly rootFingerprint: string;
  readonly moduleId: string;
  readonly operations: readonly string[];
  pcr(index: number): { readonly value: Buffer; readonly locked: boolean };
}

interface Register {
  value: Buffer;
  locked: boolean;
}

type Arguments = ReadonlyMap<string | number | bigint, CborValue>;

/** Measurements of no image: SHA-384 of "test PCR<n>" for 0, 1, 2, 3, 4 and 8. */
export function testPcr(index: number): Buffer {
  return createHash('sha384').update(`test PCR${index}`).digest();
}

const MEASURED = [0, 1, 2, 3, 4, 8];
const DEBUG_ZEROED = [0, 1, 2];
const LOCKED_FROM_START = 16;
const LEAF_MARGIN_MS = 60_000;
const RANDOM_BYTES = 256;

export async function createNsmEmulator(options: NsmEmulatorOptions = {}): Promise<NsmEmulator> {
  const clock = options.clock ?? systemClock;
  const pki = options.pki ?? (await createNsmPki({ at: clock.now() }));
  const moduleId = options.moduleId ?? 'i-0123456789abcdef0-enc0123456789abcdef';
  const registers = initialRegisters(options);
  const operations: string[] = [];
  const leaf = leafSource(pki, moduleId, clock);

  async function attest(asked: Arguments): Promise<CborValue> {
    const fields = ['public_key', 'user_data', 'nonce'].map((name) => [name, asked.get(name) ?? null] as const);
    if (fields.some(([, value]) => value !== null && !Buffer.isBuffer(value))) return failure('InvalidArgument');
    if (fields.some(([, value]) => Buffer.isBuffer(value) && value.length > MAX_DOCUMENT_FIELD_BYTES))
      return failure('InputTooLarge');
    const signer = await leaf();
    const locked = registers.flatMap(({ value, locked: is }, index) => (is ? [[index, value] as const] : []));
    const payload: DocumentPayload = new Map<string, CborValue>([
      ['module_id', moduleId],
      ['digest', 'SHA384'],
      ['timestamp', options.timestamp ?? Math.floor(clock.now())],
      ['pcrs', new Map(locked)],
      ['certificate', signer.certificate],
      ['cabundle', pki.chain.map(({ certificate }) => certificate)],
      ...fields.filter(([, value]) => value !== null || options.optionalFields !== 'absent'),
    ]);
    return answer('Attestation', {
      document: await signDocument(options.deviate?.(payload) ?? payload, signer, options),
    });
  }

  async function perform(operation: string, asked: Arguments): Promise<CborValue> {
    if (operation === 'DescribeNSM') return describeNsm(moduleId, registers);
    if (operation === 'GetRandom') return answer('GetRandom', { random: randomBytes(RANDOM_BYTES) });
    if (operation === 'Attestation') return attest(asked);
    return registerOperation(operation, asked, registers);
  }

  return {
    pki,
    rootFingerprint: pki.rootFingerprint,
    moduleId,
    operations,
    pcr: (index) => ({ ...(registers[index] ?? { value: Buffer.alloc(0), locked: false }) }),
    async exchange(request) {
      const { operation, asked } = readRequest(request);
      operations.push(operation);
      return encodeCbor(await perform(operation, asked));
    },
  };
}

function initialRegisters({ pcrs = {}, debugMode = false }: NsmEmulatorOptions): readonly Register[] {
  return Array.from({ length: PCR_COUNT }, (_, index) => {
    const zero = !MEASURED.includes(index) || (debugMode && DEBUG_ZEROED.includes(index));
    const value = pcrs[index] ?? (zero ? Buffer.alloc(PCR_BYTES) : testPcr(index));
    return { value: Buffer.from(value), locked: index < LOCKED_FROM_START };
  });
}

/** The NSM uses its leaf again until shortly before it ends. */
function leafSource(pki: NsmPki, moduleId: string, clock: Pick<Clock, 'now'>): () => Promise<Certified> {
  let current: Promise<Certified> | undefined;
  return async () => {
    const now = clock.now();
    const leaf = await current;
    if (leaf !== undefined && now < leaf.expiresAt - LEAF_MARGIN_MS) return leaf;
    current = pki.issueLeaf(moduleId, now);
    return current;
  };
}

function readRequest(request: Buffer): { readonly operation: string; readonly asked: Arguments } {
  const none = new Map<string, CborValue>();
  try {
    const decoded = decodeCbor(request);
    if (typeof decoded === 'string') return { operation: decoded, asked: none };
    if (!(decoded instanceof Map) || decoded.size !== 1) return { operation: '', asked: none };
    const [[operation, asked]] = [...decoded] as [[string, CborValue]];
    return { operation, asked: asked instanceof Map ? asked : none };
  } catch {
    return { operation: '', asked: none };
  }
}

function describeNsm(moduleId: string, registers: readonly Register[]): CborValue {
  return answer('DescribeNSM', {
    version_major: 1,
    version_minor: 0,
    version_patch: 0,
    module_id: moduleId,
    max_pcrs: PCR_COUNT,
    locked_pcrs: registers.flatMap(({ locked }, index) => (locked ? [index] : [])),
    digest: 'SHA384',
  });
}

function registerOperation(operation: string, asked: Arguments, registers: readonly Register[]): CborValue {
  if (operation === 'LockPCRs') return lockRange(asked.get('range'), registers);
  if (!['DescribePCR', 'ExtendPCR', 'LockPCR'].includes(operation)) return failure('InvalidOperation');
  const index = asked.get('index');
  const register = typeof index === 'number' ? registers[index] : undefined;
  if (register === undefined) return failure('InvalidIndex');
  if (operation === 'DescribePCR') return answer('DescribePCR', { lock: register.locked, data: register.value });
  if (register.locked) return failure('ReadOnlyIndex');
  if (operation === 'LockPCR') {
    register.locked = true;
    return 'LockPCR';
  }
  const data = asked.get('data');
  if (!Buffer.isBuffer(data)) return failure('InvalidArgument');
  register.value = createHash('sha384').update(register.value).update(data).digest();
  return answer('ExtendPCR', { data: register.value });
}

function lockRange(range: CborValue | undefined, registers: readonly Register[]): CborValue {
  if (typeof range !== 'number' || range < 0 || range > registers.length) return failure('InvalidIndex');
  for (const register of registers.slice(0, range)) register.locked = true;
  return 'LockPCRs';
}

function answer(operation: string, fields: Readonly<Record<string, CborValue>>): CborValue {
  return new Map([[operation, new Map(Object.entries(fields))]]);
}

function failure(code: string): CborValue {
  return new Map([['Error', code]]);
}

// Attestation documents as a Nitro Secure Module writes them: COSE_Sign1 (RFC 9052 §4.2) with ES384 over a CBOR
// payload. Whatever payload a test gives is signed, right or wrong.

export type DocumentPayload = Map<string, CborValue>;

export interface DocumentShape {
  readonly tagged?: boolean;
  /** The payload map with an indefinite length, as since December 2025. */
  readonly indefinite?: boolean;
  readonly protectedHeader?: Buffer;
}

const ES384_HEADER = encodeCbor(new Map([[1, -35]]));

/** @param signer the leaf of the payload's `certificate`, or another one */
export function signDocument(payload: DocumentPayload, signer: Certified, shape: DocumentShape = {}): Promise<Buffer> {
  return signPayload(shape.indefinite === true ? indefiniteMap(payload) : encodeCbor(payload), signer, shape);
}

export async function signPayload(
  bytes: Buffer,
  signer: Certified,
  { protectedHeader = ES384_HEADER, tagged = false }: DocumentShape = {},
): Promise<Buffer> {
  // RFC 9052 §4.4: Sig_structure; the signature is r ‖ s, as WebCrypto makes it.
  const signed = encodeCbor(['Signature1', protectedHeader, Buffer.alloc(0), bytes]);
  const algorithm = { name: 'ECDSA', hash: 'SHA-384' };
  const signature = Buffer.from(await crypto.subtle.sign(algorithm, signer.keys.privateKey, new Uint8Array(signed)));
  const document = encodeCbor([protectedHeader, new Map(), bytes, signature]);
  return tagged ? Buffer.concat([Buffer.from([0xd2]), document]) : document;
}

/** RFC 8949 §3.2.2. */
function indefiniteMap(entries: DocumentPayload): Buffer {
  const items = [...entries].flatMap(([key, value]) => [encodeCbor(key), encodeCbor(value)]);
  return Buffer.concat([Buffer.from([0xbf]), ...items, Buffer.from([0xff])]);
}
