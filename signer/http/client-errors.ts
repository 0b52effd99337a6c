// Answers input that is not HTTP, or exceeds a limit of HTTP, in the form of every other error
// (specification/signing.md#errors), and closes the connection. A client that has sent nothing gets no answer.

import { randomUUIDv7 } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../api/errors.ts';
import { errorBody } from './refusals.ts';

/** For the client to read the answer and hang up; whoever does not is cut off, whatever else it sends. */
const FAREWELL_MS = 1_000;

export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isSilent(socket)) {
    socket.destroy();
    return;
  }
  const reason: ErrorReason = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'malformed_request';
  const { status } = ERROR_REASONS[reason];
  const text = JSON.stringify(errorBody(new SignerError(reason), randomUUIDv7()));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
  const timer = setTimeout(() => socket.destroy(), FAREWELL_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}

/** A spare connection of a client's pool has asked for nothing: an answer on it would only be a riddle. */
function isSilent(socket: Duplex): boolean {
  return 'bytesRead' in socket && socket.bytesRead === 0;
}
