// A real DynamoDB-compatible server on loopback (@dynoxide). A small shell in between ends it when this process is
// gone, however it went. Credentials are dummies given explicitly, so no test can reach for real ones.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AwsClientOptions } from '../signer/aws/client.ts';
import { CreateTableCommand, type CreateTableCommandInput, createDynamoDBClient } from '../signer/aws/dynamodb.ts';

interface DynamoDBServerOptions {
  readonly persistent?: boolean;
  readonly host?: string;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

export interface DynamoDBServer {
  readonly endpoint: string;
  createTable(definition: CreateTableCommandInput): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

const MAX_PORT_ATTEMPTS = 5;
const PROGRAM = fileURLToPath(new URL('../node_modules/@dynoxide/linux-x64/dynoxide', import.meta.url));

export function missingDynamoDB(): string | undefined {
  if (existsSync(PROGRAM)) return undefined;
  return `needs a stand-in for DynamoDB that is not here (${PROGRAM}): on Linux on x86-64 run 'npm ci' with optional packages`;
}

/** On a busy machine a server is asked once: a second CreateTable meets the table of the first. */
export const WAITS_FOR_ANSWERS = { connectTimeoutMs: 300_000, requestTimeoutMs: 300_000 } as const;

/** Options of a client for a server on this machine: everything is explicit, nothing is looked up. */
export function dynamoDBClientOptions(endpoint: string, options: AwsClientOptions = {}): AwsClientOptions {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return { region: 'eu-central-1', endpoint, credentials, ...options };
}

export async function startDynamoDB(options: DynamoDBServerOptions = {}): Promise<DynamoDBServer> {
  const { host = '127.0.0.1' } = options;
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-dynamodb-'));
  const storage = options.persistent === true ? ['--db-path', join(directory, 'tables.db')] : [];
  try {
    for (let attempt = 1; ; attempt++) {
      const at = { host, port: await freePort(host) };
      try {
        return handle(at, storage, directory, await launch(at, storage));
      } catch (error) {
        // Another process may have taken the port between our look and the start.
        if (attempt === MAX_PORT_ATTEMPTS) throw error;
      }
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

function handle(at: Place, storage: readonly string[], directory: string, firstChild: ChildProcess): DynamoDBServer {
  let child: ChildProcess | undefined = firstChild;
  const endpoint = `http://${at.host}:${at.port}`;
  const stop = async (): Promise<void> => {
    if (child === undefined) return;
    const stopping = child;
    child = undefined;
    const gone = new Promise((resolve) => stopping.once('exit', resolve));
    // The shell in between kills the server when its input ends, and leaves once the server has.
    stopping.stdin?.end();
    await gone;
  };
  return {
    endpoint,
    stop,
    async createTable(definition) {
      const client = createDynamoDBClient(dynamoDBClientOptions(endpoint, WAITS_FOR_ANSWERS));
      try {
        await client.send(new CreateTableCommand(definition));
      } finally {
        client.destroy();
      }
    },
    async start() {
      child ??= await launch(at, storage);
    },
    async close() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return address.port;
}

// The pipe is handed over as descriptor 3: a shell gives background commands an empty standard input.
// $! is not reaped before `wait`, so the process id cannot have passed to another process when it is signalled.
const GUARD =
  'exec 3<&0; "$@" </dev/null 3<&- & server=$!; (cat <&3 >/dev/null; kill -KILL $server 2>/dev/null) & guard=$!; ' +
  'exec 3<&-; wait $server; kill $guard 2>/dev/null';

function launch({ host, port }: Place, storage: readonly string[]): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', GUARD, 'sh', PROGRAM, '--host', host, '--port', String(port), ...storage], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let output = '';
    const listen = (text: string) => {
      output = (output + text).slice(-10_000);
      if (output.includes('listening on')) resolve(child);
    };
    child.stdout.setEncoding('utf8').on('data', listen);
    child.stderr.setEncoding('utf8').on('data', listen);
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`the DynamoDB server ended at its start:\n${output}`)));
  });
}
