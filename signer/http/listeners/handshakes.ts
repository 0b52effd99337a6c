// TLS handshakes are computed on the main thread, a millisecond each. So they begin when the whole ClientHello is here,
// and only a few in each turn of the event loop. Who sends it slowly holds nothing but its place, for a limited time.

import type { Socket } from 'node:net';
import { CallerLines } from '../../../common/flow/caller-lines.ts';
import { shareOf } from '../../../common/formats/places.ts';

export const MAX_BEGUN_PER_TURN = 2;

export interface Handshakes {
  /** Never calls `begin` when the connection ended. @param address whose turn it takes */
  await(socket: Socket, address: string | undefined, begin: () => void): void;
}

export function handshakeTurns(nextTurn: (work: () => void) => void = setImmediate): Handshakes {
  /** Those whose first message is here, by address; the next turn's first. */
  const lines = new CallerLines<() => void>();
  let begun = 0;
  let isTurnPlanned = false;

  const planTurn = (): void => {
    if (isTurnPlanned) return;
    isTurnPlanned = true;
    nextTurn(() => {
      isTurnPlanned = false;
      begun = 0;
      for (let places = MAX_BEGUN_PER_TURN; places > 0; places--) beginNext();
    });
  };
  const beginNext = (): void => {
    const next = lines.take();
    if (next === undefined) return;
    begun += 1;
    planTurn();
    next.item();
  };
  const enter = (socket: Socket, share: string, begin: () => void): void => {
    const inTurn = (): void => {
      socket.off('close', leave);
      begin();
    };
    const leave = (): void => lines.remove(share, inTurn);
    socket.once('close', leave);
    lines.push(share, inTurn);
    if (begun < MAX_BEGUN_PER_TURN) beginNext();
    else planTurn();
  };

  return {
    await(socket, address, begin) {
      onFirstMessage(socket, () => enter(socket, shareOf(address), begin));
    },
  };
}

const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const HANDSHAKE_RECORD = 22;
/** Clients send some hundred bytes, two thousand with a key share of ML-KEM. */
const MAX_MEASURED_BYTES = 8192;

function onFirstMessage(socket: Socket, onMessage: () => void): void {
  let held = Buffer.alloc(0);
  const look = (): void => {
    for (let bytes = socket.read() as Buffer | null; bytes !== null; bytes = socket.read() as Buffer | null) {
      held = Buffer.concat([held, bytes]);
    }
    if (!isFirstMessageHere(held)) return;
    stop();
    socket.unshift(held);
    onMessage();
  };
  const giveUp = (): void => {
    stop();
    socket.destroy();
  };
  const stop = (): void => void socket.off('readable', look).off('end', giveUp);
  socket.on('error', () => undefined); // it is closed after that, which is what counts
  socket.on('readable', look).once('end', giveUp);
  look();
}

/** True also for what is no ClientHello, or longer than any: TLS refuses it, or has it read on, at no cost. */
export function isFirstMessageHere(bytes: Buffer): boolean {
  const header: number[] = [];
  let message = 0;
  let at = 0;
  while (at < bytes.length && bytes.length <= MAX_MEASURED_BYTES) {
    if (bytes[at] !== HANDSHAKE_RECORD) return true;
    const start = at + RECORD_HEADER_BYTES;
    if (bytes.length < start) return false;
    const length = bytes.readUInt16BE(start - 2);
    if (length === 0) return true;
    if (bytes.length < start + length) return false;
    at = start + length;
    header.push(...bytes.subarray(start, Math.min(at, start + MESSAGE_HEADER_BYTES - header.length)));
    message += length;
    const [, high, middle, low] = header;
    if (high === undefined || middle === undefined || low === undefined) continue;
    if (message >= MESSAGE_HEADER_BYTES + high * 65_536 + middle * 256 + low) return true;
  }
  return bytes.length > MAX_MEASURED_BYTES;
}
