// Collects a body in one buffer, and wipes what it does not hand over: a body may contain passwords.

import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { SignerError } from '../api/errors.ts';
import type { Admission } from './admission.ts';
import type { HttpRequest } from './context.ts';

type BodyEnd = (body: Buffer | Error) => void;

export function readBody(request: HttpRequest, stream: Readable, admission: Admission, onEnd: BodyEnd): void {
  let held: Buffer | undefined;
  let length = 0;
  let isOver = false;

  const finish = (end: Buffer | Error): void => {
    if (isOver) return;
    isOver = true;
    if (end instanceof Error) held?.fill(0);
    onEnd(end);
  };
  const onData = (chunk: Buffer): void => {
    if (isOver) return void chunk.fill(0); // the rest is not read; the answer closes the connection
    const needed = length + chunk.length;
    try {
      if (held === undefined) held = firstOf(request, chunk, admission);
      else {
        if (needed > held.length) held = larger(request, held, needed, admission);
        held.set(chunk, length);
        chunk.fill(0);
      }
      length = needed;
    } catch (error) {
      chunk.fill(0);
      finish(error instanceof Error ? error : new SignerError('internal_error', { cause: error }));
    }
  };
  stream.on('data', onData);
  stream.on('end', () => finish(held?.subarray(0, length) ?? Buffer.alloc(0)));
  stream.on('error', finish);
}

/** Nearly every body comes in one piece, which stays as it is. */
function firstOf(request: HttpRequest, chunk: Buffer, admission: Admission): Buffer {
  admission.bodyGrows(request, chunk.length);
  return chunk;
}

function larger(request: HttpRequest, held: Buffer, needed: number, admission: Admission): Buffer {
  const grown = Buffer.allocUnsafeSlow(admission.bodyGrows(request, needed));
  held.copy(grown);
  held.fill(0);
  return grown;
}

export function acceptAnyBodyAsBytes(app: FastifyInstance, admission: Admission): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, stream, done) => {
    readBody(request, stream, admission, (body) => {
      const outcome = body instanceof Error ? body : readmitted(request, body, admission);
      if (outcome instanceof Error) done(outcome);
      else done(null, outcome);
    });
  });
}

/** A body that no route gets to see is wiped: it may hold passwords. */
function readmitted(request: HttpRequest, body: Buffer, admission: Admission): Buffer | Error {
  try {
    admission.bodyRead(request, body.length);
    const refusal = admission.readmit(request);
    if (refusal === undefined) return body;
    body.fill(0);
    return new SignerError(refusal);
  } catch (error) {
    body.fill(0);
    return new SignerError('internal_error', { cause: error });
  }
}
