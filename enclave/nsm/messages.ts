// aws-nitro-enclaves-nsm-api, src/api/mod.rs. Fields that a later minor version adds are ignored.

import { PCR_COUNT } from '../../common/attestation/contract.ts';
import { CborError, type CborValue, decodeCbor, encodeCbor } from '../../common/formats/cbor.ts';
import { PCR_BYTES } from '../../common/formats/register.ts';
import { type NsmDescription, NsmError, type NsmOperation } from '../../signer/tee/nsm.ts';

/** The driver's own limits. */
const MAX_NSM_REQUEST_BYTES = 0x1000;
export const MAX_NSM_ANSWER_BYTES = 0x3000;

export type NsmFields = ReadonlyMap<string | number | bigint, CborValue>;

const MAX_RANDOM_BYTES = 4096;
const MAX_MODULE_ID_CHARACTERS = 128;
/** Another may mean other things by the same names. */
const API_MAJOR_VERSION = 1;
const ERROR_NAME = /^[A-Za-z]{1,64}$/;

export function encodeNsmRequest(
  operation: NsmOperation,
  fields: Readonly<Record<string, CborValue>> | undefined,
): Buffer {
  const request: CborValue = fields === undefined ? operation : new Map([[operation, new Map(Object.entries(fields))]]);
  const encoded = encodeCbor(request);
  if (encoded.length > MAX_NSM_REQUEST_BYTES)
    throw new NsmError('InputTooLarge', `${operation}: the request has more than ${MAX_NSM_REQUEST_BYTES} bytes`);
  return encoded;
}

/** @returns the fields of the answer, or the name of the device's error @throws NsmError `InvalidAnswer` */
export function readNsmAnswer(operation: NsmOperation, answer: Buffer): NsmFields | string {
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

export function readDescription(answer: NsmFields): NsmDescription {
  if (integer(answer, 'version_major') !== API_MAJOR_VERSION) throw invalidAnswer('it is of another major version');
  return {
    moduleId: moduleId(answer),
    maxPcrs: integer(answer, 'max_pcrs'),
    lockedPcrs: indexes(answer, 'locked_pcrs'),
    digest: text(answer, 'digest'),
  };
}

export function readRegister(answer: NsmFields): { readonly value: Buffer; readonly locked: boolean } {
  return { value: readRegisterValue(answer), locked: boolean(answer, 'lock') };
}

export function readRegisterValue(answer: NsmFields): Buffer {
  const value = answer.get('data');
  if (!Buffer.isBuffer(value) || value.length !== PCR_BYTES) throw invalidAnswer(`data is not ${PCR_BYTES} bytes`);
  return value;
}

export function readRandom(answer: NsmFields): Buffer {
  return bytes(answer, 'random', MAX_RANDOM_BYTES);
}

export function readDocument(answer: NsmFields): Buffer {
  return bytes(answer, 'document', MAX_NSM_ANSWER_BYTES);
}

export function invalidAnswer(problem: string): NsmError {
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
