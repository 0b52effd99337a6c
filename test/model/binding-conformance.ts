// Replays what the signers of a fleet did with the row SLASHING_STORE (test/support/fleet/binding-trace.ts) against the
// rules of the model: binding-trace.pml in Spin.

import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BoundStore } from '../../signer/chamber/binding-row.ts';
import type { BindingEvent } from '../support/fleet/binding-trace.ts';
import { HASH_TABLE } from './conformance.ts';

const run = promisify(execFile);
const FOLDER = import.meta.dirname;
/** As in binding-trace.pml. */
const MAX_SIGNERS = 31;
const MAX_NUMBERS = 511;
const MAX_EVENTS = 20_000;
const MAX_STORES = 3;
const NEVER = -1;
const KINDS: Readonly<Record<BindingEvent['kind'], number>> = {
  start: 1,
  stop: 2,
  right: 3,
  read: 4,
  own: 5,
  incarnate: 6,
  use_end: 7,
  jump: 8,
  bind: 9,
  beat: 10,
};

/** What binding-trace.pml reads, of the events that it has room for; how many these are. */
export function bindingNumbers(events: readonly BindingEvent[]): { readonly text: string; readonly count: number } {
  const signers = namesFrom(0);
  const stores = namesFrom(1);
  const incarnations = namesFrom(1);
  const first = events[0];
  if (first === undefined) return { text: '0\n', count: 0 };
  const [monotonic, wall] = first.began;
  const timeOf = (time: number | null | undefined): number => (typeof time === 'number' ? time - wall : NEVER);
  const rowOf = (row: BoundStore | undefined): number[] => {
    if (row === undefined) return [0, 0, 0, 0];
    const mask = row.signers.reduce((sum, name) => sum | (1 << signers.of(name)), 0);
    return [stores.of(row.storeId), row.binding, incarnations.of(row.incarnation), mask];
  };
  const lines: string[] = [];
  for (const event of events.slice(0, MAX_EVENTS)) {
    if (event.replica !== undefined) signers.of(event.replica);
    const { began, ended, held = [] } = event;
    const numbers = held.toReversed().map((number) => incarnations.of(number));
    const line = [
      KINDS[event.kind],
      event.signer,
      ...[began, ended].flatMap((times) => [times[0] - monotonic, times[1] - wall]),
      event.answer === true ? 1 : 0,
      ...rowOf(event.row),
      event.row?.heartbeat ?? 0,
      ...rowOf(event.next),
      timeOf(event.time),
      numbers.at(-1) ?? 0,
      numbers[0] ?? 0,
      timeOf(event.closedAt),
      event.isRaised === true ? 1 : 0,
      event.store === undefined ? 0 : stores.of(event.store),
    ];
    if (signers.size > MAX_SIGNERS || incarnations.size > MAX_NUMBERS || stores.size > MAX_STORES) break;
    lines.push(line.join(' '));
  }
  return { text: `${[lines.length, ...lines].join('\n')}\n`, count: lines.length };
}

/** Numbers in the order in which names come up. */
function namesFrom(first: number) {
  const known = new Map<string, number>();
  return {
    get size() {
      return known.size;
    },
    of(name: string): number {
      const number = known.get(name) ?? known.size + first;
      known.set(name, number);
      return number;
    },
  };
}

export interface BindingChecker extends AsyncDisposable {
  isAccepted(events: readonly BindingEvent[]): Promise<boolean>;
}

/** Compiles the checker; needs spin and gcc. */
export async function bindingChecker(): Promise<BindingChecker> {
  const build = join(FOLDER, '../../build/model');
  mkdirSync(build, { recursive: true });
  const directory = mkdtempSync(join(build, 'binding-'));
  for (const file of ['binding.pml', 'binding-trace.pml']) copyFileSync(join(FOLDER, file), join(directory, file));
  await run('spin', ['-a', 'binding-trace.pml'], { cwd: directory });
  const flags = ['-O1', '-w', '-DSAFETY', '-DNOCLAIM', '-DVECTORSZ=32768', '-DMEMLIM=1500'];
  await run('gcc', [...flags, '-o', 'pan', 'pan.c'], { cwd: directory });
  let traces = 0;
  return {
    async isAccepted(events) {
      traces += 1;
      const file = join(directory, `${traces}.txt`);
      writeFileSync(file, bindingNumbers(events).text);
      const env = { ...process.env, TRACE: file };
      const { stdout } = await run('./pan', ['-E', '-m200000', HASH_TABLE], { cwd: directory, env });
      const isFound = /assertion violated/.test(stdout);
      if (!isFound && /max search depth too small|out of memory|Search not completed/.test(stdout))
        throw new Error(`the search was cut short: ${stdout}`);
      return isFound;
    },
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
