// The NSM over its device: one call at a time, a bounded queue before it, a time limit. An answer that is not exactly
// what was asked for is an error.

import { MAX_DOCUMENT_FIELD_BYTES, PCR_COUNT } from '../../common/attestation/contract.ts';
import { CborError, type CborValue, decodeCbor, encodeCbor } from '../../common/formats/cbor.ts';
import { PCR_BYTES } from '../../common/formats/register.ts';
import {
  type AttestationFields,
  type Nsm,
  type NsmDescription,
  type NsmDevice,
  NsmError,
  type NsmOperation,
  type NsmOutcome,
} from '../../signer/tee/nsm.ts';

interface NsmOptions {
  readonly timeoutMs?: number;
  readonly maxCalls?: number;
  readonly signsNothing?: true | undefined;
  readonly onCall?: (operation: NsmOperation, outcome: NsmOutcome, seconds: number) => void;
}

const TIMEOUT_MS = 10_000;
const MAX_CALLS = 64;

type Call = <T>(
  operation: NsmOperation,
  read: (answer: NsmFields) => T,
  fields?: Readonly<Record<string, CborValue>>,
) => Promise<T>;

/** Every method throws an NsmError; a call with the code `Timeout` may have been carried out. */
export function createNsm(exchange: NsmDevice, options: NsmOptions = {}): Nsm {
  const call = caller(exchange, options);
  return {
    ...(options.signsNothing === undefined ? {} : { signsNothing: options.signsNothing }),
    describe: () => call('DescribeNSM', readDescription),
    describePcr: (index) => call('DescribePCR', readRegister, { index }),
    extendPcr: (index, data) => call('ExtendPCR', readRegisterValue, { index, data: Buffer.from(data) }),
    lockPcr: (index) => call('LockPCR', () => undefined, { index }),
    random: () => call('GetRandom', readRandom),
    attest: async (fields) => call('Attestation', readDocument, attestationArguments(fields)),
  };
}

function caller(exchange: NsmDevice, { timeoutMs = TIMEOUT_MS, maxCalls = MAX_CALLS, onCall }: NsmOptions): Call {
  const ask = serialised(exchange, { timeoutMs, maxCalls });
  return async (operation, read, fields) => {
    const startedAt = performance.now();
    let outcome: NsmOutcome = 'failed';
    try {
      const answer = readAndWipe(operation, await ask(operation, encodeNsmRequest(operation, fields)));
      if (typeof answer === 'string') {
        outcome = 'refused';
        throw new NsmError(answer, `${operation} was refused: ${answer}`);
      }
      const value = read(answer);
      outcome = 'ok';
      return value;
    } finally {
      onCall?.(operation, outcome, (performance.now() - startedAt) / 1000);
    }
  };
}

/** The answer may hold random bytes. */
function readAndWipe(operation: NsmOperation, answer: Buffer): NsmFields | string {
  try {
    return readNsmAnswer(operation, answer);
  } finally {
    answer.fill(0);
  }
}

/** The device cannot be interrupted: whoever waits behind a call that hangs runs into the time limit. */
function serialised(
  exchange: NsmDevice,
  { timeoutMs, maxCalls }: { readonly timeoutMs: number; readonly maxCalls: number },
): (operation: NsmOperation, request: Buffer) => Promise<Buffer> {
  let last: Promise<unknown> = Promise.resolve();
  let calls = 0;
  return async (operation, request) => {
    if (calls >= maxCalls) throw new NsmError('Busy', `${operation}: ${maxCalls} calls wait for the device already`);
    calls += 1;
    const { promise: late, reject } = Promise.withResolvers<never>();
    let abandoned = false;
    const timer = setTimeout(() => {
      abandoned = true;
      reject(new NsmError('Timeout', `${operation}: no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    const turn = last.then(() => (abandoned ? undefined : exchange(request)));
    last = turn.then(
      (answer) => void (abandoned && answer?.fill(0)),
      () => undefined,
    );
    void last.then(() => {
      calls -= 1;
    });
    try {
      return checkedLength(await Promise.race([turn, late]));
    } catch (error) {
      throw error instanceof NsmError ? error : deviceFailure(operation, error);
    } finally {
      clearTimeout(timer);
    }
  };
}

function checkedLength(answer: Buffer | undefined): Buffer {
  if (answer === undefined || answer.length === 0) throw invalidAnswer('it is empty');
  if (answer.length > MAX_NSM_ANSWER_BYTES) throw invalidAnswer(`it has more than ${MAX_NSM_ANSWER_BYTES} bytes`);
  return answer;
}

function attestationArguments({ userData, nonce, publicKey }: AttestationFields): Readonly<Record<string, CborValue>> {
  const argument = (name: string, value: Uint8Array | undefined): Buffer | null => {
    if (value === undefined) return null;
    if (value.length > MAX_DOCUMENT_FIELD_BYTES)
      throw new NsmError('InputTooLarge', `${name} has more than ${MAX_DOCUMENT_FIELD_BYTES} bytes`);
    return Buffer.from(value);
  };
  return {
    user_data: argument('user_data', userData),
    nonce: argument('nonce', nonce),
    public_key: argument('public_key', publicKey),
  };
}

function deviceFailure(operation: NsmOperation, error: unknown): NsmError {
  const code =
    error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'DeviceFailed';
  return new NsmError(code, `${operation}: ${error instanceof Error ? error.message : String(error)}`);
}

// aws-nitro-enclaves-nsm-api, src/api/mod.rs. Fields that a later minor version adds are ignored.

/** The driver's own limits. */
const MAX_NSM_REQUEST_BYTES = 0x1000;
const MAX_NSM_ANSWER_BYTES = 0x3000;

type NsmFields = ReadonlyMap<string | number | bigint, CborValue>;

const MAX_RANDOM_BYTES = 4096;
const MAX_MODULE_ID_CHARACTERS = 128;
/** Another may mean other things by the same names. */
const API_MAJOR_VERSION = 1;
const ERROR_NAME = /^[A-Za-z]{1,64}$/;

function encodeNsmRequest(operation: NsmOperation, fields: Readonly<Record<string, CborValue>> | undefined): Buffer {
  const request: CborValue = fields === undefined ? operation : new Map([[operation, new Map(Object.entries(fields))]]);
  const encoded = encodeCbor(request);
  if (encoded.length > MAX_NSM_REQUEST_BYTES)
    throw new NsmError('InputTooLarge', `${operation}: the request has more than ${MAX_NSM_REQUEST_BYTES} bytes`);
  return encoded;
}

/** @returns the fields of the answer, or the name of the device's error @throws NsmError `InvalidAnswer` */
function readNsmAnswer(operation: NsmOperation, answer: Buffer): NsmFields | string {
  const decoded = decodeAnswer(answer);
  if (decoded === operation) return new Map();
  if (!(decoded instanceof Map) || decoded.size !== 1) throw invalidAnswer('it is not one answer');
  const error = decoded.get('Error');
  if (typeof error === 'string' && ERROR_NAME.test(error)) return error;
  const fields = decoded.get(operation);
  if (!(fields instanceof Map)) throw invalidAnswer(`it does not answer ${operation}`);
  return fields;
}

function decodeAnswer(answer: Buffer): CborValue {
  try {
    return decodeCbor(answer);
  } catch (error) {
    if (error instanceof CborError) throw invalidAnswer(error.message);
    throw error;
  }
}

function readDescription(answer: NsmFields): NsmDescription {
  if (integer(answer, 'version_major') !== API_MAJOR_VERSION) throw invalidAnswer('it is of another major version');
  return {
    moduleId: moduleId(answer),
    maxPcrs: integer(answer, 'max_pcrs'),
    lockedPcrs: indexes(answer, 'locked_pcrs'),
    digest: text(answer, 'digest'),
  };
}

function readRegister(answer: NsmFields): { readonly value: Buffer; readonly locked: boolean } {
  return { value: readRegisterValue(answer), locked: boolean(answer, 'lock') };
}

function readRegisterValue(answer: NsmFields): Buffer {
  const value = answer.get('data');
  if (!Buffer.isBuffer(value) || value.length !== PCR_BYTES) throw invalidAnswer(`data is not ${PCR_BYTES} bytes`);
  return value;
}

function readRandom(answer: NsmFields): Buffer {
  return bytes(answer, 'random', MAX_RANDOM_BYTES);
}

function readDocument(answer: NsmFields): Buffer {
  return bytes(answer, 'document', MAX_NSM_ANSWER_BYTES);
}

function invalidAnswer(problem: string): NsmError {
  return new NsmError('InvalidAnswer', `the answer is not understood: ${problem}`);
}

function moduleId(answer: NsmFields): string {
  const id = text(answer, 'module_id');
  if (id === '' || id.length > MAX_MODULE_ID_CHARACTERS) throw invalidAnswer('module_id is empty or too long');
  return id;
}

function bytes(answer: NsmFields, name: string, maxBytes: number): Buffer {
  const value = answer.get(name);
  if (!Buffer.isBuffer(value) || value.length === 0 || value.length > maxBytes)
    throw invalidAnswer(`${name} is not 1 to ${maxBytes} bytes`);
  return value;
}

function integer(answer: NsmFields, name: string): number {
  const value = answer.get(name);
  if (typeof value !== 'number' || value < 0) throw invalidAnswer(`${name} is not a number`);
  return value;
}

function boolean(answer: NsmFields, name: string): boolean {
  const value = answer.get(name);
  if (typeof value !== 'boolean') throw invalidAnswer(`${name} is neither true nor false`);
  return value;
}

function text(answer: NsmFields, name: string): string {
  const value = answer.get(name);
  if (typeof value !== 'string') throw invalidAnswer(`${name} is not text`);
  return value;
}

function indexes(answer: NsmFields, name: string): readonly number[] {
  const value = answer.get(name);
  const valid = (index: CborValue): index is number => typeof index === 'number' && index >= 0 && index < PCR_COUNT;
  if (!Array.isArray(value) || value.length > PCR_COUNT || !value.every(valid))
    throw invalidAnswer(`${name} is not a list of register numbers`);
  return value;
}
