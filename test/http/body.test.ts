// How a body is read: into memory that was asked for, and wiped when it is not handed over.

import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import type { Admission } from '../../signer/http/admission.ts';
import { readBody } from '../../signer/http/body.ts';
import type { HttpRequest } from '../../signer/http/context.ts';

const REQUEST = {} as HttpRequest;

function read(chunks: readonly Buffer[], bodyGrows: Admission['bodyGrows']): Promise<Buffer | Error> {
  const stream = Readable.from(chunks, { objectMode: false });
  return new Promise((resolve) => readBody(REQUEST, stream, { bodyGrows } as Admission, resolve));
}

it('a body in any number of pieces is what was sent, in memory that was asked for each time it grew', async () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  for (const size of [1, 7, 1000, 99_999, 100_000]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      Buffer.from(bytes.subarray(index * size, (index + 1) * size)),
    );
    const asked: number[] = [];
    let room = 0;
    const body = await read(pieces, (_request, needed) => {
      asked.push(needed);
      room = Math.max(needed, 2 * room);
      return room;
    });
    expect(bytes.equals(body as Buffer)).toBe(true);
    expect(asked.length).toBeLessThanOrEqual(Math.log2(bytes.length / size) + 2);
  }
});

it('a body without a byte asks for nothing', async () => {
  const body = await read([], () => {
    throw new Error('nothing is to be asked for');
  });
  expect(body).toEqual(Buffer.alloc(0));
});

it('a body that is refused on the way ends with the reason, and nothing of it is left', async () => {
  const pieces = ['a password', ' in two', ' pieces, and more'].map((text) => Buffer.from(text));
  let calls = 0;
  const end = await read(pieces, (_request, needed) => {
    calls += 1;
    if (calls === 2) throw new SignerError('overloaded');
    return needed;
  });
  expect(end).toMatchObject({ reason: 'overloaded' });
  expect(Buffer.concat(pieces.slice(0, 2)).every((byte) => byte === 0)).toBe(true);
  expect(calls).toBe(2);
});
