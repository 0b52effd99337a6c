// The routes of receipts over a folder, as docs/specification/receipts.md#routes has them, for signers that a real one
// never is: one that withholds, one that shows another log than before. It answers what `change` makes of a file.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { encodeBundle } from '../../common/receipts/read-entry.ts';
import { decodeBundle } from '../../common/receipts/tiles.ts';

export interface ReceiptsServer {
  readonly url: string;
  readonly asked: readonly string[];
  readonly connections: number;
  close(): Promise<void>;
}

export type Change = (path: string, content: Buffer | undefined) => Buffer | undefined;

const PARTIAL = /^(.*)\.p\/(\d+)$/;
const TILES = '/api/v1/receipts/tiles/';

export async function serveReceipts(folder: string, change: Change = (_, content) => content): Promise<ReceiptsServer> {
  const asked: string[] = [];
  let connections = 0;
  const server: Server = createServer((request, response) => {
    const path = request.url ?? '';
    const content = path.startsWith(TILES) ? shownFile(path.slice(TILES.length)) : Buffer.from(bootsAnswer(folder));
    response.writeHead(content === undefined ? 404 : 200).end(content ?? '{}');
  });
  const shownFile = (path: string): Buffer | undefined => {
    asked.push(path);
    return change(path, fileOf(folder, path));
  };
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get connections() {
      return connections;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function bootsAnswer(folder: string): string {
  const boots = readdirSync(folder).toSorted();
  return JSON.stringify({ boot: boots[0], boots });
}

/** A tile that is asked for narrower than it is, is cut. */
function fileOf(folder: string, path: string): Buffer | undefined {
  const file = join(folder, path);
  if (existsSync(file)) return readFileSync(file);
  const [, tile = '', width] = PARTIAL.exec(path) ?? [];
  if (width === undefined) return undefined;
  const partial = join(folder, `${tile}.p`);
  const widths = existsSync(partial) ? readdirSync(partial).map(Number) : [];
  const wider = existsSync(join(folder, tile)) ? join(folder, tile) : join(partial, String(Math.max(...widths)));
  if (!existsSync(wider)) return undefined;
  const entries = decodeBundle(readFileSync(wider)) ?? [];
  return entries.length < Number(width) ? undefined : encodeBundle(entries.slice(0, Number(width)));
}
