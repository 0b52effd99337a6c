// How a body comes to a route that the framework serves: as bytes, whatever its content type says, in memory that
// admission gave room for, and only when the request may still be acted on.

import type { FastifyInstance } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import type { Admission } from '../admission.ts';
import type { HttpRequest } from '../context.ts';
import { readBody } from './request.ts';

/** Clients differ in the content types they send; every body is JSON and is parsed by its route. */
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

/**
 * The body, or why the request goes no further; then no route gets to see and to wipe it, and it may hold passwords.
 */
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
