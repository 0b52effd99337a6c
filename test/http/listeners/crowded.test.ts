// One address without credentials that opens connections, says nothing or only begins to, and opens each again when it
// is cut: every new client of another address gets in, and who was admitted stays. On each listener, and at the gate of
// the parent proxy before the attested one.

import http from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { FREE_TOKEN } from '../../support/ratls-signer.ts';
import { ADMITTED, ATTACKER, ATTACKERS, HONEST, LISTENERS, NEWCOMERS, PATH, PLACES } from './crowded-listeners.ts';

/** Opens so many, each again when it is cut, until it is told to stop. @returns when all are open for the first time */
async function attack(open: (from: string) => Promise<Socket>, says: string): Promise<() => void> {
  let isOver = false;
  const sockets = new Set<Socket>();
  const again = async (): Promise<void> => {
    try {
      const socket = await open(ATTACKER);
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('end', () => socket.destroy()) // whoever is cut off hangs up too
        .resume();
      if (says !== '') socket.write(says);
      socket.once('close', () => {
        sockets.delete(socket);
        if (!isOver) setImmediate(() => void again());
      });
      if (isOver) socket.destroy();
    } catch {
      if (!isOver) setImmediate(() => void again());
    }
  };
  await Promise.all(Array.from({ length: ATTACKERS }, again));
  return () => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  };
}

/** Requests on one stream, one after another. */
function asker(socket: Socket): () => Promise<number | undefined> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return () => ask(agent);
}

function ask(agent: http.Agent): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { authorization: `Bearer ${FREE_TOKEN}` };
  http
    .get({ agent, host: 'signer', path: PATH, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    })
    .on('error', reject);
  return promise;
}

const SLOW_HEADER = `GET ${PATH} HTTP/1.1\r\nHost: x\r\n`;

describe.each(LISTENERS)('at %s', (_where, listen) => {
  it.each([
    ['say nothing at all', 'openRaw', ''],
    ['begin a request and do not end it', 'open', SLOW_HEADER],
  ] as const)(
    'an address whose connections %s keeps no new client out, and no admitted one',
    async (_what, how, says) => {
      const listening = await listen();
      const kept = await listening.open(ATTACKER); // of the same address, and admitted
      const askKept = asker(kept);
      for (const _ of [1, 2]) expect(await askKept()).toBe(ADMITTED);
      const stop = await attack(listening[how], says);
      try {
        for (let number = 0; number < NEWCOMERS; number += 1) {
          const socket: Socket | TLSSocket = await listening.open(HONEST);
          expect({ number, status: await asker(socket)() }).toEqual({ number, status: ADMITTED });
          socket.destroy();
        }
        expect(await askKept()).toBe(ADMITTED);
      } finally {
        stop();
        kept.destroy();
      }
      const lost = listening.lost;
      expect(lost.filter((why) => why === 'displaced').length).toBeGreaterThan(ATTACKERS - PLACES);
      expect(lost).not.toContain('limit');
    },
  );
});
