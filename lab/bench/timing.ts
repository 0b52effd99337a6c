// `make bench-timing REQUESTS=…`: whether the time of an answer tells what a caller may not know. In each pair two
// kinds of requests alternate at random, one at a time on one connection, and their times are compared by Welch's t and
// by Mann-Whitney: tokens that are wrong early, late or altogether; keys and accessors that exist and that do not; with
// tokens of the configuration and of a table. Loopback: the best place that an attacker can have. The statistics are
// here, because nothing else needs them.

import { connect, type Socket } from 'node:net';
import { startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { deployKeyFiles } from '../../test/support/deployment.ts';
import { call, randaoReveal, TEST_TOKEN, testKey } from '../../test/support/requests.ts';
import { startMeasured } from './measured-signer.ts';

const REQUESTS = Number(process.argv[2] || 100_000);
const WARM_UP = 3_000;
/** Of the sorted times, so that a pause of the machine does not decide Welch's t. */
const KEPT_SHARE = 0.95;
/** What a reader may call a difference: p below one in a thousand, twice (both tests). */
const CRITICAL = 3.29;
const NARROW_TOKEN = 'sr_client_TEST_TOKEN_that_may_use_one_key_0000001';

const [own, other, nobody] = [testKey(0), testKey(1), testKey(2)];
const tokens = [
  { secret: TEST_TOKEN, policies: ['all'] },
  { secret: NARROW_TOKEN, policies: ['narrow'] },
];
const policies = [
  { name: 'all', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
  { name: 'narrow', rules: [{ effect: 'allow', scopes: ['sign'], keys: [own.publicKey] }] },
];
const signer = await startMeasured([own, other], 'native', { static_auth: { policies, tokens } });
const body = JSON.stringify(randaoReveal());

// With tokens in a table, each of which has an accessor.
const world = await startCustody();
const table = await world.createTable();
const { static_auth: _none, ...files } = deployKeyFiles([own, other]).config;
const stateful = await startSigner({
  config: { ...files, ...world.configuration(table, world.createCeremony()) },
  env: world.environment(),
  keepsLog: false,
});
const root = await world.rootToken(table);

async function create(path: string, given: object): Promise<Record<string, unknown>> {
  const { status, text, json } = await call(`${stateful.url}/api/v1/auth/${path}`, { token: root, body: given });
  if (status >= 300) throw new Error(`${path} got ${status}: ${text}`);
  return json;
}

await create('policies', { name: 'narrow', rules: policies[1]?.rules });
const made = await create('tokens', { policies: ['narrow'] });
const [token, accessor] = [String(made['token']), String(made['accessor'])];
const otherAccessor = `acc_${'0'.repeat(32)}`;

function request(token: string, publicKey: string): Buffer {
  return Buffer.from(
    `POST /api/v1/eth2/sign/${publicKey} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function lookUp(named: string): Buffer {
  return Buffer.from(
    `GET /api/v1/auth/tokens/${named} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
}

const withLast = (token: string, last: string): string => `${token.slice(0, -1)}${last}`;
const withFirst = (token: string, first: string): string => token.replace('TEST', `${first}EST`);
const UNKNOWN = 'sr_client_QWERTY_entirely_other_characters_zyxwvu';

interface Pair {
  readonly name: string;
  readonly to: RunningSigner;
  readonly one: Buffer;
  readonly two: Buffer;
}

const PAIRS: readonly Pair[] = [
  {
    to: signer,
    name: 'the same request twice (control)',
    one: request(UNKNOWN, own.publicKey),
    two: request(UNKNOWN, own.publicKey),
  },
  {
    to: signer,
    name: 'unknown token, token wrong in its last character',
    one: request(UNKNOWN, own.publicKey),
    two: request(withLast(TEST_TOKEN, '9'), own.publicKey),
  },
  {
    to: signer,
    name: 'token wrong early, token wrong in its last character',
    one: request(withFirst(TEST_TOKEN, 'X'), own.publicKey),
    two: request(withLast(TEST_TOKEN, '9'), own.publicKey),
  },
  {
    to: signer,
    name: 'wrong token for a key that exists, for one that nobody has',
    one: request(UNKNOWN, own.publicKey),
    two: request(UNKNOWN, nobody.publicKey),
  },
  {
    to: signer,
    name: 'good token: the key of another caller, a key that nobody has',
    one: request(NARROW_TOKEN, other.publicKey),
    two: request(NARROW_TOKEN, nobody.publicKey),
  },
  {
    to: stateful,
    name: 'table: unknown token, token wrong in its last character',
    one: request(`sr_client_${'q'.repeat(43)}`, own.publicKey),
    two: request(withLast(token, token.endsWith('9') ? '8' : '9'), own.publicKey),
  },
  {
    to: stateful,
    name: 'table: good token: the key of another caller, a key that nobody has',
    one: request(token, other.publicKey),
    two: request(token, nobody.publicKey),
  },
  {
    to: stateful,
    name: 'table: accessor that exists, one that nobody has, for a caller that may not look',
    one: lookUp(accessor),
    two: lookUp(otherAccessor),
  },
];

/** One connection, one request at a time; resolves with the status. */
class Asker {
  readonly #socket: Socket;
  #answer: ((status: string) => void) | undefined;
  #received = '';

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true).on('data', (bytes) => this.#take(bytes.toString('latin1')));
  }

  static async open(port: number): Promise<Asker> {
    const socket = connect(port, '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    return new Asker(socket);
  }

  ask(bytes: Buffer): Promise<string> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#received += text;
    const head = this.#received.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = head + 4 + Number(/content-length: (\d+)/i.exec(this.#received)?.[1] ?? 0);
    if (this.#received.length < length) return;
    const status = this.#received.slice(9, 12);
    this.#received = this.#received.slice(length);
    this.#answer?.(status);
  }
}

async function timesOf(
  { one, two, to }: Pair,
  count: number,
): Promise<{ times: [number[], number[]]; statuses: Set<string> }> {
  const port = Number(new URL(to.url).port);
  let asker = await Asker.open(port);
  const times: [number[], number[]] = [[], []];
  const statuses = new Set<string>();
  for (let index = 0; index < count; index++) {
    const which = Math.random() < 0.5 ? 0 : 1;
    const started = performance.now();
    const status = await asker.ask(which === 0 ? one : two);
    times[which].push((performance.now() - started) * 1000);
    statuses.add(`${which === 0 ? 'first' : 'second'} ${status}`);
    if (index % 5_000 === 4_999) {
      asker.close();
      asker = await Asker.open(port);
    }
  }
  asker.close();
  return { times, statuses };
}

function welch(one: readonly number[], two: readonly number[]): number {
  const [a, b] = [one, two].map((all) => {
    const kept = all.toSorted((left, right) => left - right).slice(0, Math.floor(all.length * KEPT_SHARE));
    const mean = kept.reduce((sum, value) => sum + value, 0) / kept.length;
    const variance = kept.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (kept.length - 1);
    return { mean, error: variance / kept.length };
  }) as [{ mean: number; error: number }, { mean: number; error: number }];
  return (a.mean - b.mean) / Math.sqrt(a.error + b.error);
}

/** z of the rank sum; equal times share their rank. */
function mannWhitney(one: readonly number[], two: readonly number[]): number {
  const all = [...one.map((time) => [time, 0] as const), ...two.map((time) => [time, 1] as const)];
  all.sort(([left], [right]) => left - right);
  let ranks = 0;
  for (let from = 0; from < all.length; ) {
    let to = from;
    while (to < all.length && all[to]?.[0] === all[from]?.[0]) to += 1;
    for (let at = from; at < to; at++) if (all[at]?.[1] === 0) ranks += (from + to + 1) / 2;
    from = to;
  }
  const [n, m] = [one.length, two.length];
  return (ranks - (n * (n + m + 1)) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, two) => one - two)[Math.floor(values.length / 2)] ?? Number.NaN;
}

process.stdout.write(
  '| Pair | answers | requests | medians (µs) | difference (µs) | Welch t | Mann-Whitney z | leak |\n',
);
process.stdout.write('|---|---|---|---|---|---|---|---|\n');
let leaks = 0;
for (const pair of PAIRS) {
  await timesOf(pair, WARM_UP);
  const { times, statuses } = await timesOf(pair, REQUESTS);
  const [t, z] = [welch(...times), mannWhitney(...times)];
  const [one, two] = times.map(median) as [number, number];
  const isLeak = Math.abs(t) > CRITICAL && Math.abs(z) > CRITICAL;
  leaks += isLeak ? 1 : 0;
  process.stdout.write(
    `| ${pair.name} | ${[...statuses].toSorted().join(', ')} | ${REQUESTS} | ${one.toFixed(1)}, ${two.toFixed(1)} | ` +
      `${(one - two).toFixed(2)} | ${t.toFixed(2)} | ${z.toFixed(2)} | ${isLeak ? 'YES' : 'none'} |\n`,
  );
}
await Promise.all([signer.stop(), stateful.stop()]);
await world.close();
process.stdout.write(leaks === 0 ? 'nothing measurable\n' : `${leaks} pairs differ measurably\n`);
process.exit(0);
