// Everything awaited has a time, also promises of others. A file that asks a neighbour (the network, a worker, a
// package of another) stands in this table, with the limit that ends its waiting, and the test in which the neighbour
// never answers. A new one does not pass before it stands here, too.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAMS = ['signer', 'service', 'enclave', 'parent-proxy', 'common'];
/** What answers when it likes: sockets, names, threads, programs, and packages that use them. */
const NEIGHBOURS =
  /(?:from |import\()'(node:(?:net|tls|http|https|http2|dns|dns\/promises|dgram|worker_threads|child_process)|pg|@aws-sdk\/[\w-]+|@grpc\/[\w-]+|@opentelemetry\/[\w-]+)'/;
/** Values of them that ask for nothing. */
const ASKS_NOTHING =
  /^import (?:type )?\{ (?:type \w+, )?(?:isIP\w*|SocketAddress|STATUS_CODES|type \w+)(?:, (?:isIP\w*|SocketAddress|STATUS_CODES|type \w+))* \} from/;

interface Awaited {
  readonly awaits: string;
  /** A name of the limit, and the file that has it. */
  readonly limit: readonly [name: string, file: string];
  readonly test: string;
}

const SELF = (file: string, name: string): Awaited['limit'] => [name, file];

const AWAITED: Readonly<Record<string, Awaited>> = {
  'common/observe/tracing.ts': {
    awaits: 'the collector of traces, at the end; exports are nobody’s wait',
    limit: SELF('signer/boot/telemetry.ts', 'TRACING_CLOSE_MS'),
    test: 'test/e2e/tracing.test.ts',
  },
  'enclave/parent/credentials.ts': {
    awaits: 'credentials from the parent',
    limit: SELF('enclave/parent/credentials.ts', 'ANSWER_WITHIN_MS'),
    test: 'test/enclave/parent/credentials.test.ts',
  },
  'enclave/parent/egress.ts': {
    awaits: 'the parent, for a way outside',
    limit: SELF('enclave/parent/egress.ts', 'CONNECT_ATTEMPT_MS'),
    test: 'test/e2e/enclave-hostile-parent.test.ts',
  },
  'parent-proxy/forwarding/egress.ts': {
    awaits: 'names and connects of endpoints',
    limit: SELF('parent-proxy/forwarding/egress.ts', 'connectTimeoutMs'),
    test: 'test/parent-proxy/forwarding/egress.test.ts',
  },
  'parent-proxy/forwarding/ingress.ts': {
    awaits: 'the enclave, for a client',
    limit: SELF('parent-proxy/forwarding/reach.ts', 'connectTimeoutMs'),
    test: 'test/parent-proxy/weather.test.ts',
  },
  'parent-proxy/services/credentials.ts': {
    awaits: 'clients that send their question',
    limit: SELF('parent-proxy/services/credentials.ts', 'TIMEOUT_MS'),
    test: 'test/parent-proxy/services/credentials.test.ts',
  },
  'parent-proxy/services/instance-credentials.ts': {
    awaits: 'the credentials of the instance',
    limit: SELF('parent-proxy/limits.ts', 'CREDENTIALS_TIMEOUT_MS'),
    test: 'test/parent-proxy/services/credentials.test.ts',
  },
  'parent-proxy/start.ts': {
    awaits: 'scrapers that send their question',
    limit: SELF('parent-proxy/start.ts', 'SCRAPE_TIMEOUT_MS'),
    test: 'test/parent-proxy/lingering.test.ts',
  },
  'service/listeners.ts': {
    awaits: 'the address of its own listen names, at a start',
    limit: SELF('signer/boot/step.ts', 'LIMIT_MS'),
    test: 'test/boot/step.test.ts',
  },
  'service/receipts-folder.ts': {
    awaits: 'the worker that writes receipts',
    limit: SELF('signer/boot/receipts.ts', 'LAST_HEAD_SHARE'),
    test: 'test/e2e/receipts.test.ts',
  },
  'signer/aws/client.ts': {
    awaits: 'credentials of every client of AWS, and the connections',
    limit: SELF('signer/aws/client.ts', 'CREDENTIALS_TIMEOUT_MS'),
    test: 'test/e2e/silent-credentials.test.ts',
  },
  'signer/aws/dynamodb.ts': {
    awaits: 'DynamoDB: slashing, state and key tables',
    limit: SELF('signer/aws/client.ts', 'REQUEST_TIMEOUT_MS'),
    test: 'test/e2e/fault-matrix.test.ts',
  },
  'signer/aws/kms.ts': {
    awaits: 'KMS',
    limit: SELF('signer/aws/client.ts', 'REQUEST_TIMEOUT_MS'),
    test: 'test/e2e/fault-matrix.test.ts',
  },
  'signer/http/listeners/listen.ts': {
    awaits: 'requests that end, when the signer does',
    limit: SELF('signer/http/listeners/listen.ts', 'STALLED_AFTER_MS'),
    test: 'test/e2e/server-life.test.ts',
  },
  'signer/http/listeners/metrics.ts': {
    awaits: 'scrapers that send their question',
    limit: SELF('signer/http/listeners/metrics.ts', 'Timeout'),
    test: 'test/http/listeners/crowded.test.ts',
  },
  'signer/http/listeners/ports.ts': {
    awaits: 'the address of its own listen names, at a start',
    limit: SELF('signer/boot/step.ts', 'LIMIT_MS'),
    test: 'test/boot/step.test.ts',
  },
  'signer/http/listeners/probe.ts': {
    awaits: 'probes that send their question',
    limit: SELF('signer/http/listeners/probe.ts', 'Timeout'),
    test: 'test/http/listeners/crowded.test.ts',
  },
  'signer/keys/keystores/pool.ts': {
    awaits: 'workers that decrypt; a load is nobody’s wait, and ends with the signer',
    limit: SELF('common/command-line/serving.ts', 'THREADS_END_MS'),
    test: 'test/e2e/server-life.test.ts',
  },
  'signer/native/vsock-stream.ts': {
    awaits: 'connects to the parent',
    limit: SELF('signer/native/vsock.ts', 'timeoutMs'),
    test: 'test/enclave/log.test.ts',
  },
  'signer/bls/portable.ts': {
    awaits: 'workers that sign',
    limit: SELF('signer/http/routes/sign.ts', 'requestTimeoutSeconds'),
    test: 'test/bls/portable.test.ts',
  },
  'signer/sign/envelopes/envelope-reader.ts': {
    awaits: 'the worker that reads large bodies',
    limit: SELF('signer/http/routes/sign.ts', 'requestTimeoutSeconds'),
    test: 'test/e2e/request-bodies.test.ts',
  },
  'signer/slashing/postgres/connection/connections.ts': {
    awaits: 'PostgreSQL: name, connection, TLS, each answer',
    limit: SELF('signer/slashing/postgres/connection/connections.ts', 'answerMs'),
    test: 'test/slashing/postgres/silent-connections.test.ts',
  },
  'signer/slashing/sqlite/checkpoints.ts': {
    awaits: 'the worker of checkpoints, whose end nothing but a close waits for',
    limit: SELF('signer/slashing/sqlite/checkpoints.ts', 'WORKER_CLOSE_WAIT_MS'),
    test: 'test/slashing/sqlite/checkpoints.test.ts',
  },
  'signer/slashing/sqlite/database-client.ts': {
    awaits: 'the worker of the database, and its disk',
    limit: SELF('signer/slashing/operations/store.ts', 'unlessAborted'),
    test: 'test/e2e/stores-that-cannot-write.test.ts',
  },
  'service/first/try.ts': {
    awaits: 'the signer that it started itself, which the person who waits can end',
    limit: SELF('signer/boot/step.ts', 'LIMIT_MS'),
    test: 'test/boot/step.test.ts',
  },
  'signer/tls/file.ts': {
    awaits: 'nothing but files',
    limit: SELF('signer/boot/step.ts', 'LIMIT_MS'),
    test: 'test/boot/step.test.ts',
  },
  'common/observe/output.ts': {
    awaits: 'the destination of the log',
    limit: SELF('signer/http/required-audit.ts', 'CONFIRM_TIMEOUT_MS'),
    test: 'test/e2e/log-destinations.test.ts',
  },
};

const files = execFileSync('git', ['ls-files', '-z', '--', ...PROGRAMS], { cwd: ROOT, encoding: 'utf8' })
  .split('\0')
  .filter((path) => path.endsWith('.ts') && existsSync(join(ROOT, path)));

/** Not a worker's own side, which answers. */
function asks(path: string): boolean {
  const text = readFileSync(join(ROOT, path), 'utf8');
  if (/\bparentPort\b/.test(text)) return false;
  const statements = text.match(/^(?:import|export) [^;]*;|import\('[^']+'\)/gm) ?? [];
  return statements.some(
    (statement) =>
      NEIGHBOURS.test(statement) && !/^(?:import|export) type /.test(statement) && !ASKS_NOTHING.test(statement),
  );
}

it('each file that asks a neighbour stands in the table', () => {
  const asking = files.filter(asks);
  expect(asking.length).toBeGreaterThan(20);
  expect(asking.filter((path) => AWAITED[path] === undefined)).toEqual([]);
  expect(Object.keys(AWAITED).filter((path) => !files.includes(path))).toEqual([]);
});

it.each(Object.entries(AWAITED))('%s: the limit and the test are there', (_path, { limit: [name, file], test }) => {
  expect(readFileSync(join(ROOT, file), 'utf8')).toMatch(new RegExp(`${name}\\b`));
  expect(existsSync(join(ROOT, test))).toBe(true);
});
