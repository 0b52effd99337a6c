// A TCP proxy in front of PostgreSQL that goes wrong exactly at a commit, where it hurts most, and that leads to
// another server when it is told, as the name of a database does after a failover.

import { connect, createServer, type Socket } from 'node:net';
import { joinEnds } from './tcp-faults.ts';

/**
 * `lose_commit`: the connection breaks before the commit arrives. `lose_answer`: it breaks after the commit was done.
 * `silence`: the commit is done and nothing is ever heard of it.
 */
export type CommitFault = 'lose_commit' | 'lose_answer' | 'silence';

export interface PostgresProxy {
  readonly port: number;
  /** What befalls every commit from now on. */
  setFault(fault: CommitFault | undefined): void;
  /** Lead new connections to another server; those that are open stay, or are cut. */
  switchTo(port: number, open: 'keep' | 'cut'): void;
  close(): Promise<void>;
}

/** In front of a server of this machine, on a free port. */
export async function startPostgresProxy(serverPort: number): Promise<PostgresProxy> {
  let fault: CommitFault | undefined;
  let upstreamPort = serverPort;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(upstreamPort, '127.0.0.1');
    let cut: CommitFault | undefined;
    joinEnds(client, upstream, sockets);
    client.on('data', (bytes) => {
      if (bytes.includes('COMMIT\0')) cut = fault;
      if (cut === 'lose_commit') client.destroy();
      else upstream.write(bytes);
    });
    let answers: Buffer = Buffer.alloc(0);
    upstream.on('data', (bytes: Buffer) => {
      if (cut === undefined) {
        client.write(bytes);
        return;
      }
      answers = Buffer.concat([answers, bytes]);
      // The command tag of the answer: the commit is done.
      if (cut === 'lose_answer' && answers.includes('COMMIT\0')) client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return {
    port: address.port,
    setFault(next) {
      fault = next;
    },
    switchTo(port, open) {
      upstreamPort = port;
      if (open === 'cut') for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
