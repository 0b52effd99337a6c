// The model of the slashing protocol is about this program: what stores of the fleet's world were asked and answered is
// accepted by the model's rules, and altered traces are not.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import type { BindingEvent } from '../support/fleet/binding-trace.ts';
import { FleetCluster } from '../support/fleet/cluster.ts';
import { fleetKeys } from '../support/fleet/keys.ts';
import { runWorld } from '../support/fleet/run.ts';
import { BOUND_MS } from '../support/fleet/signer-parts.ts';
import { openClient, openSites } from '../support/fleet/sites.ts';
import { worldTime } from '../support/fleet/time.ts';
import { fleetTrace } from '../support/fleet/trace.ts';
import { lacking } from '../support/needs.ts';
import { IS_WHOLE, sized, someOf } from '../support/scale.ts';
import { type BindingChecker, bindingChecker, bindingNumbers } from './binding-conformance.ts';
import { keyTraces, type StoreTrace, type TraceChecker, traceChecker } from './conformance.ts';

const SEEDS = someOf([1, 4], 1);
/** Of each kind. */
const MAX_ALTERATIONS = sized(3, 10);
const MIN_TRACES = IS_WHOLE ? 15 : 8;
const MIN_CALLS = IS_WHOLE ? 150 : 75;
const MESSAGES = 600;
const BEAT_MS = BOUND_MS / 5;
/** Of no key that moves a few times. */
const LATER_TENURE = 201;

const NO_CHECKER = lacking('spin', 'cc');
let server: DynamoDBServer;
let client: DynamoDBClient;
let cluster: FleetCluster;
let checker: TraceChecker;
let bindingRules: BindingChecker;
const stores: StoreTrace[] = [];
const bindings: { readonly name: string; readonly events: readonly BindingEvent[] }[] = [];
beforeAll(async () => {
  if (NO_CHECKER !== undefined) return;
  server = await startDynamoDB();
  cluster = await FleetCluster.start();
  client = openClient(server);
  [checker, bindingRules] = await Promise.all([traceChecker(), bindingChecker()]);
  for (const seed of SEEDS) {
    const trace = fleetTrace();
    await runWorld({ seed, messages: MESSAGES, trace }, { server, client, cluster });
    for (const [store, { isMarks, lines }] of trace.lines) stores.push({ store: `${seed} ${store}`, isMarks, lines });
    bindings.push({ name: `seed ${seed}`, events: trace.binding.events });
  }
  bindings.push({ name: 'killed and ended', events: await killedAndEnded() });
});
afterAll(async () => {
  if (NO_CHECKER !== undefined) return;
  await checker[Symbol.asyncDispose]();
  await bindingRules[Symbol.asyncDispose]();
  client.destroy();
  await server.close();
  await cluster.close();
});

describe.skipIf(NO_CHECKER)('traces of the fleet', () => {
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
    expect(accepted).toBeGreaterThan(MIN_TRACES);
    expect(calls).toBeGreaterThan(MIN_CALLS);
    expect(stores.filter(({ store, lines }) => store.endsWith('database') && lines.length > 0)).not.toEqual([]);
    console.info(`${accepted} traces, ${calls} calls`);
  });

  it('are rejected with one verdict, tenure or record altered', async () => {
    const alterations = { refusal: 0, record: 0, tenure: 0 };
    for (const trace of stores.flatMap(keyTraces)) {
      const doubles = trace.calls.findIndex(({ answer }) => answer === 4);
      if (doubles >= 0 && alterations.refusal < MAX_ALTERATIONS) {
        alterations.refusal += 1;
        expect([trace.name, await checker.isAccepted(altered(trace, doubles, { answer: 1 }))]).toEqual([
          trace.name,
          false,
        ]);
      }
      const ended = trace.calls.findIndex(({ kind, hasFailed }) => kind === 2 && hasFailed !== true);
      if (ended >= 0 && alterations.tenure < MAX_ALTERATIONS) {
        alterations.tenure += 1;
        expect([trace.name, await checker.isAccepted(altered(trace, ended, { answer: LATER_TENURE }))]).toEqual([
          trace.name,
          false,
        ]);
      }
      const signed = trace.calls.findIndex(({ answer, hasFailed }) => answer === 1 && hasFailed !== true);
      if (signed >= 0 && alterations.record < MAX_ALTERATIONS) {
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

describe.skipIf(NO_CHECKER)('traces of the row SLASHING_STORE', () => {
  it('are accepted by the rules of the model', async () => {
    const kinds = new Set<string>();
    let count = 0;
    for (const { name, events } of bindings) {
      expect([name, await bindingRules.isAccepted(events)]).toEqual([name, true]);
      for (const { kind, answer } of events) kinds.add(answer === undefined ? kind : `${kind} ${answer}`);
      count += bindingNumbers(events).count;
    }
    const needed = ['jump', 'use_end true', 'bind true', 'bind false', 'beat true', 'right true', 'right false'];
    expect([...kinds]).toEqual(expect.arrayContaining(needed));
    expect(count).toBeGreaterThan(150);
    console.info(`${bindings.length} traces of the row, ${count} steps`);
  });

  it.each<[string, Choice, Alteration]>([
    ['a right that is gone', isSettled(false), flipped],
    ['a right that is refused', isSettled(true), flipped],
    ['a heartbeat that was not written', isAnswered('beat', true), flipped],
    ['a take-over that came too late and was written', isAnswered('bind', false), flipped],
    ['a take-over without its jump', isUsed('jump', 'incarnate'), (events, at) => events.toSpliced(at, 1)],
    ['a take-over before its time', ({ kind }) => kind === 'jump', seenLater],
    [
      'an end in order that is used without its record',
      isUsed('use_end', 'bind'),
      (events, at) => events.toSpliced(at, 1),
    ],
    ['an end in order that was used before', isAnswered('use_end', true), flipped],
    ['a number that was never written', isUsed('incarnate', 'bind', 'beat'), flipped],
    ['a store that has no number', ({ kind, held }) => kind === 'own' && held?.length !== 0, emptied],
  ])('are rejected with %s', async (_name, isOne, alter) => {
    let altered = 0;
    for (const { name, events } of bindings) {
      const at = events.findLastIndex(isOne);
      if (at < 0) continue;
      altered += 1;
      expect([name, await bindingRules.isAccepted(alter(events, at))]).toEqual([name, false]);
    }
    expect(altered).toBeGreaterThan(0);
  });
});

type Choice = (event: BindingEvent, index: number, events: readonly BindingEvent[]) => boolean;
type Alteration = (events: readonly BindingEvent[], at: number) => readonly BindingEvent[];

function isAnswered(kind: BindingEvent['kind'], answer: boolean): Choice {
  return (event) => event.kind === kind && event.answer === answer;
}

/** A step that was done, and that the signer's next one builds upon: what comes last in a trace shows nothing. */
function isUsed(kind: BindingEvent['kind'], ...next: readonly BindingEvent['kind'][]): Choice {
  return (event, index, events) => {
    if (event.kind !== kind || event.answer === false) return false;
    const then = events.slice(index + 1).find((later) => later.signer === event.signer && later.kind !== 'right');
    return then !== undefined && next.includes(then.kind);
  };
}

/**
 * A right of which the rules allow one answer. A signer gets the answer of its write some time after the row has it,
 * and meanwhile both are right; who has just given the same answer, at the same moment, is past that.
 */
function isSettled(answer: boolean): Choice {
  return (event, index, events) => {
    if (event.kind !== 'right' || event.answer !== answer) return false;
    const earlier = events.slice(0, index).filter(({ signer }) => signer === event.signer);
    const [before] = earlier.slice(-1);
    if (before?.kind !== 'right' || before.answer !== answer) return false;
    if (before.began.some((time, clock) => time !== event.began[clock])) return false;
    const last = earlier.findLast(({ kind }) => kind !== 'right');
    const hasWritten = (last?.kind === 'beat' || last?.kind === 'bind') && last.answer === true;
    return hasWritten === answer && last?.kind !== 'stop';
  };
}

function changed(events: readonly BindingEvent[], at: number, change: Partial<BindingEvent>): readonly BindingEvent[] {
  return events.with(at, { ...(events[at] as BindingEvent), ...change });
}

function flipped(events: readonly BindingEvent[], at: number): readonly BindingEvent[] {
  return changed(events, at, { answer: events[at]?.answer !== true });
}

function emptied(events: readonly BindingEvent[], at: number): readonly BindingEvent[] {
  return changed(events, at, { held: [] });
}

/** The look before it, as if the row had been seen for half of the time. */
function seenLater(events: readonly BindingEvent[], at: number): readonly BindingEvent[] {
  const signer = events[at]?.signer;
  const look = events.findLastIndex((event, index) => index < at && event.kind === 'read' && event.signer === signer);
  const [monotonic = 0, wall = 0] = events[look]?.ended ?? [];
  return changed(events, look, { ended: [monotonic - BOUND_MS, wall - BOUND_MS] });
}

/**
 * What random worlds have now and then: a signer that is killed and two that want its place at once, an end in order,
 * and a signer that goes on from it.
 */
async function killedAndEnded(): Promise<readonly BindingEvent[]> {
  const [trace, time, keys] = [fleetTrace(), worldTime(), fleetKeys()];
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-fleet-'));
  const parts = { server, client, cluster, directory, id: 'killed', time, keys, missing: undefined };
  const sites = await openSites({ ...parts, onReleased: () => undefined, trace });
  const signers = sites.find(({ name }) => name === 'fleet')?.signers ?? [];
  const pass = async (looks: number): Promise<void> => {
    for (let look = 0; look < looks; look++) {
      time.pass(BEAT_MS);
      await Promise.all(signers.map((signer) => signer.look()));
    }
  };
  for (const [index, signer] of signers.entries()) await signer.start(0, index === 0);
  await pass(5);
  await signers[0]?.kill();
  await pass(10);
  const bound = signers.filter(({ mayManage }) => mayManage);
  for (const signer of signers.filter((one) => !bound.includes(one))) await signer.kill();
  for (const signer of bound) await signer.stop();
  await bound.at(-1)?.start(1);
  await pass(5);
  for (const signer of signers) await signer.kill();
  await keys.close();
  rmSync(directory, { recursive: true, force: true });
  return trace.binding.events;
}

type KeyTrace = ReturnType<typeof keyTraces>[number];

function altered(trace: KeyTrace, call: number, change: Partial<KeyTrace['calls'][number]>): KeyTrace {
  return { ...trace, calls: trace.calls.map((one, index) => (index === call ? { ...one, ...change } : one)) };
}
