// A small HTTP proxy before a real table server that has neither accounts nor ARNs: it says whose credentials each call
// was signed with, takes a table's ARN where DynamoDB does, and refuses that of an account which is not the caller's,
// as AWS documents it (Developer Guide, Cross-account access). All else is the server's. Signatures are not verified.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseTableArn } from '../../signer/aws/table-name.ts';

export interface TableCall {
  readonly operation: string;
  readonly accessKeyId: string;
  /** As the call names them, each once; of a statement, its text. */
  readonly tables: readonly string[];
}

export interface TableProxy {
  readonly endpoint: string;
  /** Every call that arrived, refused ones too. */
  readonly calls: readonly TableCall[];
  close(): Promise<void>;
}

export interface TableProxyOptions {
  readonly region: string;
  /** The account that credentials belong to, where a bare name is a table; the server has those of `serverAccount`. */
  readonly accountOf: (accessKeyId: string) => string;
  readonly serverAccount: string;
  /** What a caller of another account is told; AccessDeniedException unless given. */
  readonly foreign?: 'AccessDeniedException' | 'ResourceNotFoundException';
}

export async function startTableProxy(target: string, options: TableProxyOptions): Promise<TableProxy> {
  const calls: TableCall[] = [];
  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => undefined); // the client may go at any time
    serve(incoming, outgoing, target, options, calls).catch(() => outgoing.socket?.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    calls,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

type Json = Record<string, unknown>;

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: string,
  options: TableProxyOptions,
  calls: TableCall[],
): Promise<void> {
  const request = JSON.parse(await textOf(incoming)) as Json;
  const operation = String(incoming.headers['x-amz-target']).replace(/^.*\./, '');
  const [, accessKeyId = ''] = /Credential=([^/]+)\//.exec(incoming.headers.authorization ?? '') ?? [];
  const tables = [...new Set(tablesIn(request))];
  calls.push({ operation, accessKeyId, tables });
  const refusal = refusalOf(operation, tables, options.accountOf(accessKeyId), options);
  if (refusal !== undefined) return answer(outgoing, 400, { __type: `com.amazonaws#${refusal}`, message: refusal });
  const reply = await fetch(target, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': String(incoming.headers['x-amz-target']),
      authorization: incoming.headers.authorization ?? '',
      'x-amz-date': String(incoming.headers['x-amz-date']),
    },
    body: JSON.stringify(renamed(request, (table) => parseTableArn(table)?.name ?? table)),
  });
  const asked = new Map(tables.map((table) => [parseTableArn(table)?.name ?? table, table]));
  answer(outgoing, reply.status, answered((await reply.json()) as Json, asked, options));
}

function answer(outgoing: ServerResponse, status: number, body: Json): void {
  outgoing.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
}

function refusalOf(
  operation: string,
  tables: readonly string[],
  account: string,
  { region, serverAccount, foreign = 'AccessDeniedException' }: TableProxyOptions,
): string | undefined {
  for (const table of tables) {
    const arn = parseTableArn(table);
    if (arn === undefined && table.includes('arn:')) return 'ValidationException'; // within a statement
    if (arn !== undefined && operation === 'CreateTable') return 'ValidationException';
    if (arn !== undefined && (arn.account !== account || arn.region !== region)) return foreign;
    if (arn === undefined && account !== serverAccount) return 'ResourceNotFoundException';
  }
  return undefined;
}

/** Wherever a call names a table: TableName at any depth, the members of RequestItems, the text of a statement. */
function* tablesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if ((name === 'TableName' || name === 'Statement') && typeof member === 'string') yield member;
    else if (name === 'RequestItems') yield* Object.keys(member as Json);
    else if (!DATA.has(name)) yield* tablesIn(member);
  }
}

/** Members that hold items, which may have attributes of any name. */
const DATA: ReadonlySet<string> = new Set(['Item', 'Key', 'Keys', 'ExpressionAttributeValues', 'Parameters']);

function renamed(value: unknown, rename: (table: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (name === 'TableName') return [name, rename(String(member))];
      if (name === 'RequestItems') return [name, renamedMembers(member as Json, rename)];
      return [name, DATA.has(name) ? member : renamed(member, rename)];
    }),
  );
}

function renamedMembers(byTable: Json, rename: (table: string) => string): Json {
  return Object.fromEntries(Object.entries(byTable).map(([table, member]) => [rename(table), member]));
}

/** Batches are answered by what the request called the tables, and a table's ARN says whose it is. */
function answered(body: Json, asked: ReadonlyMap<string, string>, options: TableProxyOptions): Json {
  const back = (table: string): string => asked.get(table) ?? table;
  return Object.fromEntries(
    Object.entries(body).map(([name, member]) => {
      const isByTable = (name === 'Responses' && !Array.isArray(member)) || name === 'UnprocessedKeys';
      if (isByTable) return [name, renamedMembers((member ?? {}) as Json, back)];
      return [name, name === 'Table' || name === 'TableDescription' ? withArn(member as Json, options) : member];
    }),
  );
}

function withArn(table: Json, { region, serverAccount }: TableProxyOptions): Json {
  return { ...table, TableArn: `arn:aws:dynamodb:${region}:${serverAccount}:table/${String(table['TableName'])}` };
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
