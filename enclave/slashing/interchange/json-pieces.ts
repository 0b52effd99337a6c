// Reads one large JSON object from its bytes, piece by piece (piece-parser.ts). So memory is bounded by the largest
// piece, whatever the size of the file, and the event loop has its turn after some kilobytes of it. Bytes that are not
// UTF-8 are refused.

import { setImmediate } from 'node:timers/promises';
import { InterchangeError } from './error.ts';
import { type JsonPiece, type PieceOptions, PieceParser } from './piece-parser.ts';

/** Bytes of a file between two turns of the event loop: a few milliseconds. */
const TURN_BYTES = 64 * 1024;
/** @throws InterchangeError, also for bytes that are not UTF-8 */
export async function* readJsonPieces(
  source: AsyncIterable<Uint8Array>,
  options: PieceOptions,
): AsyncGenerator<JsonPiece> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const parser = new PieceParser(options);
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new InterchangeError(parser.place(), 'the file is not UTF-8 text');
    }
  };
  let bytesInTurn = 0;
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += TURN_BYTES) {
      const part = bytes.subarray(at, at + TURN_BYTES);
      bytesInTurn += part.length;
      if (bytesInTurn > TURN_BYTES) {
        await setImmediate();
        bytesInTurn = part.length;
      }
      yield* parser.feed(decode(part), false);
    }
  }
  yield* parser.feed(decode(), true);
}
