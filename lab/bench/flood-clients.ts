// The clients of one flood (lab/bench/floods.ts), as a process of their own that goes on until it is killed. They come
// from many addresses of loopback, so that a limit of connections for one address is not what stops them. Loopback
// only.

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { randaoReveal } from '../../test/support/requests.ts';

export interface FloodPlan {
  readonly kind: FloodKind;
  readonly port: number;
  readonly tlsPort: number;
  readonly token: string;
  readonly publicKeys: readonly string[];
}

export type FloodKind = keyof typeof FLOODS;

const ADDRESSES = 200;
const DRIP_MS = 100;
const RENEW_MS = 20;

let opened = 0;
let asked = 0;

function open(port: number): Socket {
  opened += 1;
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${2 + (opened % ADDRESSES)}` });
  socket.on('error', () => undefined).on('data', () => undefined);
  return socket;
}

/** So many connections, each begun again a little after it ended. */
function keepOpen(count: number, use: (again: () => void) => Socket): void {
  const begin = (): void => {
    const again = (): void => void setTimeout(begin, RENEW_MS);
    use(again).once('close', again);
  };
  for (let connection = 0; connection < count; connection++) begin();
}

/** One byte of what is after `first` now and then. */
function drip(plan: FloodPlan, count: number, first: string): void {
  keepOpen(count, () => {
    const socket = open(plan.port);
    socket.write(first);
    const timer = setInterval(() => socket.write('x'), DRIP_MS);
    socket.once('close', () => clearInterval(timer));
    return socket;
  });
}

/** Requests without a pause on so many connections: the next one when the answer begins. */
function ask(plan: FloodPlan, count: number, requestOf: () => string): void {
  keepOpen(count, () => {
    const socket = open(plan.port);
    const send = (): void => {
      asked += 1;
      socket.write(requestOf());
    };
    socket.once('connect', send);
    socket.on('data', (bytes) => {
      if (bytes.includes('HTTP/1.1')) send();
    });
    return socket;
  });
}

function post(path: string, token: string, body: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

const SIGN = '/api/v1/eth2/sign';
const REVEAL = JSON.stringify(randaoReveal());

const FLOODS = {
  'slow headers': (plan: FloodPlan) => drip(plan, 300, `GET /upcheck HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: `),
  'slow bodies': (plan: FloodPlan) => {
    const head = post(`${SIGN}/${plan.publicKeys[0]}`, plan.token, ' '.repeat(30_000));
    drip(plan, 300, head.slice(0, -29_999));
  },
  'silent connections, renewed': (plan: FloodPlan) => keepOpen(1_000, () => open(plan.port)),
  '10,000 idle connections': (plan: FloodPlan) => keepOpen(10_000, () => open(plan.port)),
  'huge headers': (plan: FloodPlan) => {
    const request = `GET /upcheck HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Huge: ${'x'.repeat(60_000)}\r\n\r\n`;
    ask(plan, 32, () => request);
  },
  'deep JSON': (plan: FloodPlan) => {
    const request = post(`${SIGN}/${plan.publicKeys[0]}`, plan.token, '['.repeat(30_000));
    ask(plan, 16, () => request);
  },
  'TLS handshakes': (plan: FloodPlan) =>
    keepOpen(32, () => {
      asked += 1;
      const socket = connectTls({ port: plan.tlsPort, host: '127.0.0.1', rejectUnauthorized: false });
      socket.on('error', () => undefined).once('secureConnect', () => socket.destroy());
      return socket;
    }),
  'one token fills the queue': (plan: FloodPlan) =>
    ask(plan, 512, () => post(`${SIGN}/${plan.publicKeys[asked % plan.publicKeys.length]}`, plan.token, REVEAL)),
  'wrong tokens': (plan: FloodPlan) =>
    ask(plan, 64, () => post(`${SIGN}/${plan.publicKeys[0]}`, `sr_client_TEST_WRONG_TOKEN_${asked}`, REVEAL)),
  batches: (plan: FloodPlan) => {
    const body = JSON.stringify({ identifiers: plan.publicKeys, signing_request: randaoReveal() });
    const request = post(SIGN, plan.token, body);
    ask(plan, 16, () => request);
  },
} as const;

export const FLOOD_KINDS = Object.keys(FLOODS) as readonly FloodKind[];

if (process.send !== undefined) {
  process.on('message', (plan: FloodPlan | 'count') => {
    if (plan === 'count') process.send?.({ opened, asked });
    else FLOODS[plan.kind](plan);
  });
}
