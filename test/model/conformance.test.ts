// The model of the slashing protocol is about this program: what stores of the fleet's world were asked and answered is
// accepted by the model's rules, and altered traces are not.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { type DynamoDBServer, startDynamoDB } from '../../tools/rehearsal/dynamodb.ts';
import { FleetCluster } from '../support/fleet/cluster.ts';
import { runWorld } from '../support/fleet/run.ts';
import { openClient } from '../support/fleet/sites.ts';
import { fleetTrace } from '../support/fleet/trace.ts';
import { keyTraces, type StoreTrace, type TraceChecker, traceChecker } from './conformance.ts';

const SEEDS = [1, 4];
const MESSAGES = 600;
/** Of no key that moves a few times. */
const LATER_TENURE = 201;

let server: DynamoDBServer;
let client: DynamoDBClient;
let cluster: FleetCluster;
let checker: TraceChecker;
const stores: StoreTrace[] = [];
beforeAll(async () => {
  server = await startDynamoDB();
  cluster = await FleetCluster.start();
  client = openClient(server);
  checker = await traceChecker();
  for (const seed of SEEDS) {
    const trace = fleetTrace();
    await runWorld({ seed, messages: MESSAGES, trace }, { server, client, cluster });
    for (const [store, { isMarks, lines }] of trace.lines) stores.push({ store: `${seed} ${store}`, isMarks, lines });
  }
});
afterAll(async () => {
  await checker[Symbol.asyncDispose]();
  client.destroy();
  await server.close();
  await cluster.close();
});

describe('traces of the fleet', () => {
  it('are accepted by the rules of the model', async () => {
    const rejected: string[] = [];
    let [accepted, calls] = [0, 0];
    for (const trace of stores.flatMap(keyTraces)) {
      if (trace.calls.length === 0) continue;
      const answer = await checker.isAccepted(trace);
      if (answer !== true) rejected.push(`${trace.name}: ${answer}, ${trace.calls.length} calls`);
      else accepted += 1;
      calls += trace.calls.length;
    }
    expect(rejected).toEqual([]);
    // Traces of a few calls would prove nothing. How long each is depends on when its store is replaced.
    expect(accepted).toBeGreaterThan(15);
    expect(calls).toBeGreaterThan(150);
    console.info(`${accepted} traces, ${calls} calls`);
  });

  it('are rejected with one verdict, tenure or record altered', async () => {
    const alterations = { refusal: 0, record: 0, tenure: 0 };
    for (const trace of stores.flatMap(keyTraces)) {
      const doubles = trace.calls.findIndex(({ answer }) => answer === 4);
      if (doubles >= 0 && alterations.refusal < 10) {
        alterations.refusal += 1;
        expect([trace.name, await checker.isAccepted(altered(trace, doubles, { answer: 1 }))]).toEqual([
          trace.name,
          false,
        ]);
      }
      const ended = trace.calls.findIndex(({ kind, hasFailed }) => kind === 2 && hasFailed !== true);
      if (ended >= 0 && alterations.tenure < 10) {
        alterations.tenure += 1;
        expect([trace.name, await checker.isAccepted(altered(trace, ended, { answer: LATER_TENURE }))]).toEqual([
          trace.name,
          false,
        ]);
      }
      const signed = trace.calls.findIndex(({ answer, hasFailed }) => answer === 1 && hasFailed !== true);
      if (signed >= 0 && alterations.record < 10) {
        alterations.record += 1;
        expect([trace.name, await checker.isAccepted(altered(trace, signed, { answer: 4 }))]).toEqual([
          trace.name,
          false,
        ]);
      }
    }
    for (const count of Object.values(alterations)) expect(count).toBeGreaterThan(0);
  });
});

type KeyTrace = ReturnType<typeof keyTraces>[number];

function altered(trace: KeyTrace, call: number, change: Partial<KeyTrace['calls'][number]>): KeyTrace {
  return { ...trace, calls: trace.calls.map((one, index) => (index === call ? { ...one, ...change } : one)) };
}
