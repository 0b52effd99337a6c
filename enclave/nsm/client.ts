// The NSM over its device: one call at a time, a bounded queue before it, a time limit. An answer that is not exactly
// what was asked for is an error.

import { MAX_DOCUMENT_FIELD_BYTES } from '../../common/attestation/contract.ts';
import type { CborValue } from '../../common/formats/cbor.ts';
import {
  type AttestationFields,
  type Nsm,
  type NsmDevice,
  NsmError,
  type NsmOperation,
  type NsmOutcome,
} from '../../signer/tee/nsm.ts';
import {
  encodeNsmRequest,
  invalidAnswer,
  MAX_NSM_ANSWER_BYTES,
  type NsmFields,
  readDescription,
  readDocument,
  readNsmAnswer,
  readRandom,
  readRegister,
  readRegisterValue,
} from './messages.ts';

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

/** A call of the device cannot be interrupted: when one hangs, the callers behind it run into their time limit. */
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
