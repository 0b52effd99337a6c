// Signatures a second and p99 when the store is far away: 0, 10 and 50 ms more for a round trip to PostgreSQL and to
// DynamoDB (its stand-in), by a relay that hands on each piece of a connection later. A round trip that the signer does
// not need costs here what it costs an operator.
// Run: bin/pinned-node lab/bench/distant-store.ts [--keys N] [--rounds N]

import { connect, createServer, type Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { deployKeys } from '../../test/support/deployment.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { testKey } from '../../test/support/requests.ts';
import { median } from './bars.ts';
import { type Load, LoadGenerator, Votes } from './measured-signer.ts';

const { values } = parseArgs({
  options: { keys: { type: 'string', default: '4992' }, rounds: { type: 'string', default: '5' } },
});
const ROUNDS = Number(values.rounds);
const ADDED_MS = [0, 10, 50];
const WARM_UP = 3;
const LONE_REQUESTS = 50;

interface Relay {
  readonly port: number;
  close(): Promise<void>;
}

const keys = Array.from({ length: Number(values.keys) }, (_, index) => testKey(index));
const generator = await LoadGenerator.start();
const [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
for (const addedMs of ADDED_MS) {
  const near = await startRelay(postgres.port, addedMs);
  const url = new URL(postgres.url(await postgres.createDatabase()));
  url.port = String(near.port);
  await measure('postgres', addedMs, { anti_slashing: { backend: 'postgres' } }, { SVC_ANTI_SLASHING__URL: url.href });
  await near.close();

  const relay = await startRelay(Number(new URL(dynamodb.endpoint).port), addedMs);
  const table = `distant-${addedMs}`;
  await dynamodb.createTable(tableDefinition(table));
  const aws = { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'TEST', AWS_SECRET_ACCESS_KEY: 'TEST' };
  const env = { ...aws, AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${relay.port}` };
  await measure('dynamodb', addedMs, { anti_slashing: { backend: 'dynamodb', table } }, env);
  await relay.close();
}
generator.stop();
await Promise.all([postgres.close(), dynamodb.close()]);

async function measure(store: string, addedMs: number, config: object, env: Record<string, string>): Promise<void> {
  const signer = await deployKeys(keys, { ...config }).start({ env, keepsLog: false });
  const votes = new Votes(keys);
  for (let round = 0; round < WARM_UP; round++) await run(signer, { requests: votes.slotBursts() });
  const results: { readonly perSecond: number; readonly p99: number; readonly lone: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const burst = await run(signer, { requests: votes.slotBursts() });
    const lone = await run(signer, { requests: votes.distinct(LONE_REQUESTS), connections: 1 });
    results.push({ perSecond: keys.length / burst.seconds, p99: burst.p99, lone: lone.p50 });
  }
  const of = (pick: (result: (typeof results)[number]) => number): string => median(results.map(pick)).toFixed(1);
  process.stdout.write(
    `${store}, ${addedMs} ms added: ${of(({ perSecond }) => perSecond)} signatures a second, p99 ${of(({ p99 }) => p99)} ms; ` +
      `a lone request ${of(({ lone }) => lone)} ms\n`,
  );
  await signer.stop();
}

async function run(signer: RunningSigner, load: Load) {
  const result = await generator.run(signer, load);
  const { '200': signed = 0 } = result.statuses;
  if (signed !== load.requests.length) throw new Error(`not everything was signed: ${JSON.stringify(result.statuses)}`);
  return result;
}

/** Half of the time on the way there, half on the way back. */
async function startRelay(port: number, addedMs: number): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port, host: '127.0.0.1' });
    handOn(near, far, addedMs / 2);
    handOn(far, near, addedMs / 2);
    for (const socket of [near, far]) open.add(socket.once('close', () => open.delete(socket)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return {
    port: address.port,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Timers of one length end in the order in which they began, so that pieces stay in theirs. */
function handOn(from: Socket, to: Socket, delayMs: number): void {
  const later = (work: () => void): void => void (delayMs === 0 ? work() : setTimeout(work, delayMs));
  from.setNoDelay(true);
  from.on('data', (piece) => later(() => to.destroyed || to.write(piece)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
}
