// `make bench-floods`: what a flood does to clients with a good token. They ask at a steady pace, alone and then beside
// the flood, on connections that they open within each of the two, in one run on one signer. Printed: their p50 and p99
// without and with it, the ratios, and the share that was answered 200. The flood runs on the same cores, so that a
// part of each ratio is what its clients compute.
//
// Usage: floods [NAME]

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { attestation, TEST_TOKEN, testKey } from '../../test/support/requests.ts';
import { FLOOD_KINDS, type FloodKind, type FloodPlan } from './flood-clients.ts';
import { startMeasured } from './measured-signer.ts';

const KEYS = 200;
const REQUESTS = 300;
const RATE_PER_SECOND = 60;
const CONNECTIONS = 8;
const PATIENCE_MS = 15_000;
/** Until the flood is at its height. */
const RISE_MS = 2_000;
const FALL_MS = 3_000;
const FLOOD_TOKEN = 'sr_client_TEST_TOKEN_of_a_flood_000000000000001';

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly answered: number;
}

const keys = Array.from({ length: KEYS }, (_, index) => testKey(index));
const policies = [{ name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }];
const tokens = [TEST_TOKEN, FLOOD_TOKEN].map((secret) => ({ secret, policies: ['full'] }));
const signer = await startMeasured(keys, 'native', { static_auth: { policies, tokens } });
let epoch = 1;

function ask(agent: Agent, { url }: RunningSigner, publicKey: string, body: string): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${TEST_TOKEN}`, 'content-type': 'application/json' };
    const call = request(
      `${url}/api/v1/eth2/sign/${publicKey}`,
      { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      (answer) => {
        answer.resume().once('close', () => resolve(answer.statusCode === 200));
      },
    );
    call.setTimeout(PATIENCE_MS, () => call.destroy());
    call.once('error', () => resolve(false)).end(body);
  });
}

/** At a steady pace; each latency counts from when its request was due. */
async function goodClients(): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const started = performance.now();
  const latencies: number[] = [];
  let good = 0;
  const asking: Promise<void>[] = [];
  for (let index = 0; index < REQUESTS; index++) {
    if (index % KEYS === 0) epoch += 1;
    const due = started + (index * 1000) / RATE_PER_SECOND;
    await pause(Math.max(0, due - performance.now()));
    const body = JSON.stringify(attestation({ source: epoch - 1, target: epoch }));
    asking.push(
      ask(agent, signer, keys[index % KEYS]?.publicKey ?? '', body).then((isGood) => {
        if (!isGood) return;
        good += 1;
        latencies.push(performance.now() - due);
      }),
    );
  }
  await Promise.all(asking);
  agent.destroy();
  latencies.sort((one, other) => one - other);
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.POSITIVE_INFINITY;
  return { p50: at(0.5), p99: at(0.99), answered: good / REQUESTS };
}

async function besideFlood(kind: FloodKind): Promise<{ readonly figures: Figures; readonly counts: string }> {
  const flood = fork(join(import.meta.dirname, 'flood-clients.ts'));
  const port = Number(new URL(signer.url).port);
  const tlsPort = Number(new URL(signer.tlsUrl ?? '').port);
  const publicKeys = keys.map(({ publicKey }) => publicKey);
  flood.send({ kind, port, tlsPort, token: FLOOD_TOKEN, publicKeys } satisfies FloodPlan);
  await pause(RISE_MS);
  const figures = await goodClients();
  flood.send('count');
  const [{ opened, asked }] = (await once(flood, 'message')) as [{ opened: number; asked: number }];
  const ended = once(flood, 'exit');
  flood.kill('SIGKILL');
  await ended;
  return { figures, counts: `${opened} connections, ${asked} requests` };
}

const ms = (value: number): string => value.toFixed(1);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
await goodClients(); // warm
process.stdout.write(
  '| Flood | p50 alone, with it (ms) | ratio | p99 alone, with it (ms) | ratio | answered | flood |\n',
);
process.stdout.write('|---|---|---|---|---|---|---|\n');
for (const kind of FLOOD_KINDS) {
  if (process.argv[2] !== undefined && !kind.includes(process.argv[2])) continue;
  const alone = await goodClients();
  const { figures, counts } = await besideFlood(kind);
  const [p50, p99] = [figures.p50 / alone.p50, figures.p99 / alone.p99];
  process.stdout.write(
    `| ${kind} | ${ms(alone.p50)}, ${ms(figures.p50)} | ${p50.toFixed(1)} | ${ms(alone.p99)}, ${ms(figures.p99)} | ` +
      `${p99.toFixed(1)} | ${percent(figures.answered)} | ${counts} |\n`,
  );
  await pause(FALL_MS);
}
await signer.stop();
process.exit(0);
