// The document that docs/examples/attestation-document.txt shows byte by byte is the one of the vectors, whole, and
// each line says what our own reader finds at its place.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readCoseSign1, readPayload } from '../../../common/attestation/document.ts';
import { annotated } from './annotated-document.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const { connection } = JSON.parse(read('test/vectors/evidence-v1.json')) as { connection: { document: string } };
const document = Buffer.from(connection.document, 'hex');
const shown = read('docs/examples/attestation-document.txt').trimEnd();
const lines = shown.split('\n').map((line) => /^ *(\d+)(?: {2}([0-9a-f]+))?(?: {2}# ( *\S.*))?$/.exec(line) ?? []);

it('the page has every byte of it, each at its place', () => {
  expect(lines.map(([, , hex = '']) => hex).join('')).toBe(connection.document);
  let at = 0;
  for (const [line, place, hex = ''] of lines) {
    expect([line, Number(place)]).toEqual([line, at]);
    at += hex.length / 2;
  }
  expect(at).toBe(document.length);
});

it('the page says what the bytes are', () => {
  expect(shown).toBe(annotated(document));
});

it('our own reader finds the same there', () => {
  const { payload, signature } = readCoseSign1(document);
  const { moduleId, timestamp, pcrs, userData, nonce } = readPayload(payload);
  const meaning = new Map(lines.map(([, place = '', , what]) => [Number(place), what?.trim()]));
  const behind = (what: string): Buffer => {
    const at = lines.findIndex(([, , , of]) => of?.trim() === what);
    const end = lines.findIndex(([, , , of], index) => index > at && of !== undefined);
    return Buffer.from(
      lines
        .slice(at + 1, end === -1 ? undefined : end)
        .map(([, , hex = '']) => hex)
        .join(''),
      'hex',
    );
  };
  expect(shown).toContain(`"${moduleId}"`);
  expect(shown).toContain(new Date(timestamp).toISOString());
  expect(pcrs.size).toBe(18);
  for (const [index, value] of pcrs) expect(behind(`of PCR${index}: 48 bytes`)).toEqual(value);
  expect(behind('user_data: 69 bytes')).toEqual(userData);
  expect(behind('nonce: 32 bytes')).toEqual(nonce);
  expect(behind('signature: r ‖ s: 96 bytes')).toEqual(signature);
  expect(meaning.get(0)).toBe('COSE_Sign1: an array of 4; no tag');
});

it('another byte, or one more, is not shown as the same', () => {
  expect(() => annotated(Buffer.concat([document, Buffer.of(0)]))).toThrow('something is behind the signature');
  expect(() => annotated(Buffer.concat([Buffer.of(0xd2), document]))).toThrow('of another kind');
  const other = Buffer.from(document);
  other.writeUInt8(other.readUInt8(110) ^ 1, 110);
  expect(annotated(other)).not.toBe(shown);
});
