// A connection of a load: a raw kept-alive socket, requests written as prepared bytes, answers read only as far as
// status and length. Two generators use it: one as fast as answers come, one on the clock of slots. Loopback only.

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** One kept-alive connection with at most one request under way. */
export interface RawClient {
  ask(request: Buffer): void;
  /** Called with the status and text of each answer; with what happened instead when the connection ended before it. */
  onAnswer: (status: string, body: string) => void;
  close(): void;
}

/** `onread` instead of a stream's events, where there is no TLS: the generator runs on the signer's cores. */
export function openClient({ port, tls }: { readonly port: number; readonly tls: boolean }): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    const onBytes = (bytes: Buffer): void => {
      received += bytes.toString('latin1');
      const answer = takeAnswer();
      if (answer !== undefined) client.onAnswer(...answer);
    };
    let received = '';
    /** The length of the answer under way, once its head is here: a long answer is searched once, not at each piece. */
    let expected = 0;
    let body = 0;
    const takeAnswer = (): [status: string, body: string] | undefined => {
      if (expected === 0) {
        const head = received.indexOf('\r\n\r\n');
        if (head === -1) return undefined;
        body = head + 4;
        expected = body + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      }
      if (received.length < expected) return undefined;
      const isRefused = received[expected - 1] === ']' && received.includes('"error":');
      const status = isRefused ? 'refused' : received.slice(9, 12);
      const answer: [string, string] = [status, received.slice(body, expected)];
      received = received.slice(expected);
      expected = 0;
      return answer;
    };
    const onread = {
      buffer: Buffer.alloc(65_536),
      callback(length: number, bytes: Uint8Array): boolean {
        onBytes(Buffer.from(bytes.buffer, bytes.byteOffset, length));
        return true;
      },
    };
    const opened = (): void => resolve(client);
    const socket: Socket = tls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, opened) // a benchmark's own certificate
      : connect({ port, host: '127.0.0.1', onread }, opened);
    const client: RawClient = {
      ask(request) {
        if (socket.destroyed) queueMicrotask(() => client.onAnswer(end, ''));
        else socket.write(request);
      },
      onAnswer: () => undefined,
      close() {
        client.onAnswer = () => undefined;
        socket.destroy();
      },
    };
    socket.setNoDelay(true);
    if (tls) socket.on('data', onBytes);
    let end = 'closed';
    socket.on('error', (error) => {
      end = 'error';
      reject(error);
    });
    socket.on('close', () => client.onAnswer(end, ''));
  });
}
